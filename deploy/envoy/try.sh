#!/usr/bin/env bash
# Envoy 1.40 with the agent inside is offered 600 requests a second and lets 400 pass: `bash deploy/envoy/try.sh`
set -euo pipefail
cd "$(dirname "$0")/../.." && trap 'kill $(jobs -p)' EXIT
cargo build --release && export ENVOY_DYNAMIC_MODULES_SEARCH_PATH=target/release
target/release/headworks controller --limits deploy/envoy/limits.yaml --log error &
target/release/headworks aggregator --zone a --controllers http://127.0.0.1:7200 --log error &
"${HEADWORKS_ENVOY:-envoy}" -c deploy/envoy/module.yaml --log-level error &
sleep 3 && target/release/headworks load --target http://127.0.0.1:10000 --key me --rps 600 --duration 10s
sleep 2 && curl --silent 'http://127.0.0.1:9901/stats?filter=headworks'
