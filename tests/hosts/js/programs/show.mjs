// Output of the programs.

// Node would print the line that threw, and Pyodide is one line of a million characters.
process.on("uncaughtException", (error) => {
  console.error(error.stack);
  process.exit(1);
});

// Print a value as a line of JSON. A BigInt becomes a string with an n, and an error its class and parameter.
export function show(value) {
  console.log(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}n` : asPlain(each))));
}

function asPlain(value) {
  if (value instanceof Uint8Array) return [...value];
  if (value instanceof Error) return value.parameter ? `${value.name} ${value.parameter}` : value.name;
  return value;
}

// Return the value of a promise, or the error that it rejects with.
export function outcome(promise) {
  return Promise.resolve(promise).catch((error) => error);
}
