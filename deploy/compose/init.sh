#!/bin/sh
# Creates the keys and passwords that compose.yaml reads: files in secrets/, variables in .env.
# They are created once: a new host.key or password would not fit the data of the volumes.
set -eu
cd "${1:-$(dirname "$0")}"
if [ -e .env ]; then
	echo "init.sh: .env exists, so the keys do too; remove .env, secrets/ and the volumes to start over" >&2
	exit 1
fi
umask 077
random() { printf k; head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'; } # a letter first: NATS takes digits for a number
mkdir -p secrets
head -c 48 /dev/urandom > secrets/host-key
openssl genpkey -algorithm ed25519 -out secrets/audit-key
random > secrets/peer-token
postgres=$(random)
printf 'postgres://waybill:%s@postgres:5432/waybill?sslmode=disable\n' "$postgres" > secrets/postgres-url
cat > .env <<EOF
WAYBILL_USER=$(id -u):$(id -g)
WAYBILL_API_KEY=$(random)
NATS_PASSWORD=$(random)
POSTGRES_PASSWORD=$postgres
EOF
