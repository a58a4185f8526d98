// Servers of the programs. The first argument of a program is the JSON that `triclinium serve` prints.

import { openCluster } from "triclinium";

export const served = JSON.parse(process.argv[2]);

// Open a cluster with timeouts that no correct client reaches.
export function open(options) {
  const { connection_string: address, username, password } = served;
  return openCluster(address, { username, password, timeouts: { kv: 60_000, query: 60_000 }, ...options });
}

export function storeOf(cluster) {
  return served.bucket ? cluster.bucket(served.bucket).defaultCollection() : cluster.defaultCollection();
}

export async function command(text) {
  const { url, token } = served.control;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${url}/commands`, { method: "POST", headers, body: JSON.stringify(text) });
  if (!response.ok) throw new Error(await response.text());
}

export async function rowsOf(query) {
  const rows = [];
  for await (const row of query) rows.push(row);
  return rows;
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
