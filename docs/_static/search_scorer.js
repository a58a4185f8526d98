"use strict";

/* Guides and explanations come first, then pages that mention everything, then the reference, then what is written for
   those who change the client. */
const SHELVES = [
  [/^howto\/(from_|index)/, 280],
  [/^(index|tutorial|howto\/|explanation\/(?!decisions))/, 300],
  [/^reference\//, 200],
  [/^internals\//, 100],
];

/* A name that nobody types by chance, such as get_or_none, GetResult or triclinium.retry. */
const IS_NAME = /[a-z0-9]_[a-z]|[a-z][A-Z]|\w\.\w/;

var Scorer = {
  score: ([docname, title, , , score, , kind]) => {
    const query = (new URLSearchParams(location.search).get("q") ?? "").trim();
    if (kind === "object" && IS_NAME.test(query) && `.${title}`.endsWith(`.${query}`)) return score + 1000;
    const [, shelf] = SHELVES.find(([pattern]) => pattern.test(docname)) ?? [null, 0];
    const file = docname.split("/").pop();
    const words = query.toLowerCase().replaceAll(/\W+/g, "_");
    const isNamedSo = words !== "" && file.includes(words);
    return score + shelf + (isNamedSo ? 10 : 0) + (isNamedSo && file.startsWith(words) ? 5 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
