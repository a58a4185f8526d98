#!/bin/sh
# Tests a client of another language against failures: starts fake nodes, breaks them through curl, runs the client.
set -eu
here=$(dirname "$0")
work=$(mktemp -d)
mkfifo "$work/output"
triclinium serve --json --seed 1 </dev/null >"$work/output" &
server=$!
trap 'kill $server; rm -r "$work"' EXIT

# The first line of output has the addresses and the token. The descriptor stays open, so that the server can write.
exec 3<"$work/output"
read -r details <&3
detail() { printf %s "$details" | node -p "JSON.parse(require('fs').readFileSync(0))$1"; }
url=$(detail .control.url)
token=$(detail .control.token)

# control COMMAND: sends a command as JSON, and prints the response if it is refused.
control() {
    curl --silent --fail-with-body "$url/commands" --output "$work/response" \
        --header "Authorization: Bearer $token" --header "Content-Type: application/json" --data "$1" ||
        { cat "$work/response"; return 1; }
}

client() {
    node "$here/query_client.mjs" "$(detail .endpoints.query[0])" "$(detail .username)" "$(detail .password)" \
        "SELECT 1 AS one"
}

echo "a busy service:"
control '{"command": "add_fault", "target": "query", "fault": {"kind": "http_status", "code": 503}, "times": 2}'
client

echo "a node that restarts, and is down for half a second:"
control '{"command": "restart", "node": 0, "for_seconds": 0.5}'
client

echo "the same as text, with every second response lost on average:"
control '"query: hang_up_after_applying with probability 0.5"'
client
control '{"command": "clear_faults"}'

echo "a mistake in this script:"
control '{"command": "restart", "node": 0, "keep_data": "no"}' || echo "refused"
