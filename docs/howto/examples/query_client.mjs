// Stand-in for your client: runs one statement on the query service, and retries for a few seconds.
//
// usage: node query_client.mjs ENDPOINT USERNAME PASSWORD STATEMENT
const [endpoint, username, password, statement] = process.argv.slice(2);
const headers = {
  "Content-Type": "application/json",
  Authorization: "Basic " + Buffer.from(`${username}:${password}`).toString("base64"),
};

async function run() {
  const response = await fetch(`${endpoint}/query/service`, {
    method: "POST",
    headers,
    body: JSON.stringify({ statement }),
  });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  return (await response.json()).results;
}

for (let attempt = 1; ; attempt++) {
  try {
    console.log(JSON.stringify(await run()));
    break;
  } catch (error) {
    if (attempt === 20) {
      console.error(`gave up: ${error.cause?.code ?? error.message}`);
      process.exit(1);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
