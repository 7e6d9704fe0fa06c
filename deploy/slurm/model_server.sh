#!/usr/bin/env bash
# One model server of servers_and_run.sbatch: start it, wait until it answers, and write down its address until it ends.
set -uo pipefail

export PORT=$((FIRST_PORT + SLURM_PROCID))
address="$SERVERS_FOLDER/$SLURM_PROCID.address"

bash -c "exec $SERVER_COMMAND" &
server=$!
trap 'rm -f "$address"; kill "$server" 2>/dev/null; wait "$server"; exit 143' TERM INT

until curl -s -o /dev/null --max-time 5 "http://127.0.0.1:$PORT/v1/models"; do
    kill -0 "$server" 2>/dev/null || { echo "server $SLURM_PROCID on $(hostname) ended before it answered" >&2; exit 1; }
    sleep 2
done
echo "http://$(hostname):$PORT/v1" > "$address.new"
mv "$address.new" "$address"

wait "$server"
status=$?
rm -f "$address"
exit "$status"
