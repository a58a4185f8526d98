"use strict";

/* Guides come first, then the reference, then what is written for those who change the client. */
const SHELVES = [
  [/^(index|tutorial|howto\/)/, 300],
  [/^explanation\/(?!decisions)/, 250],
  [/^reference\//, 200],
  [/^internals\//, 100],
];

/* A name that nobody types by chance, such as get_or_none, GetResult or triclinium.retry. */
const IS_NAME = /[a-z0-9]_[a-z]|[a-z][A-Z]|\w\.\w/;

var Scorer = {
  score: ([docname, title, , , score, , kind]) => {
    const query = new URLSearchParams(location.search).get("q") ?? "";
    const isTheName = kind === "object" && IS_NAME.test(query) && `.${title}`.endsWith(`.${query}`);
    const [, shelf] = SHELVES.find(([pattern]) => pattern.test(docname)) ?? [null, 0];
    return score + (isTheName ? 1000 : shelf);
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
