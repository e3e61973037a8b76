#!/usr/bin/env bash
# One Kubernetes cluster with its whole state in the folder DIR: cluster.sh COMMAND DIR ... (cluster.py calls it).
#
#   start DIR NODES ZONES real|records   real: kubelets with containerd; records: nodes that only the API server knows
#   stop DIR                             end it; only DIR/log stays
#   left DIR                             print what is still there of it: processes and cgroups
#   load DIR NAME ARCHIVE                give all nodes the image NAME from an OCI archive
#   inside DIR COMMAND ...               run COMMAND in the control plane's network: where pods can be reached
#   node-kill | node-start DIR NODE      end a node at once with all that runs on it; start it again with its old disk
#   net-cut | net-heal DIR NODE          take a node off the network; put it back
#   api-stop | api-start DIR             kill the API server; let it come back
#   processes DIR CONTAINER              print the pids of a container, by its id, and its memory cgroup in the last line
#
# Of the environment it wants BED_BIN, BED_TOOLS and BED_PAUSE (programs.py) and, for what the nodes show to every
# container, BED_MOUNTS: lines `FOLDER PLACE`, read-only.
set -euo pipefail

HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
SELF=$HERE/cluster.sh
export PATH=$BED_BIN:$PATH:$BED_TOOLS/usr/bin:$BED_TOOLS/usr/sbin:/usr/sbin:/sbin
# runc's libseccomp, where the machine has none.
LD_LIBRARY_PATH=$(echo "$BED_TOOLS"/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH

# Addresses live only in namespaces of the cluster's own, so they are the same in every cluster: the control plane and
# the nodes on one bridge, a /24 of pods for each node, and the services' range, of which the API server and the name
# server hold theirs as plain addresses (there is no kube-proxy). All are ranges for documentation and measurements.
BRIDGE=198.51.100
PODS=198.18
SERVICES=203.0.113

fail() {
	echo "cluster.sh: $*" >&2
	exit 1
}

# until_true SECONDS WHAT COMMAND ...: wait for COMMAND to succeed.
until_true() {
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || fail "timed out waiting for $what"
		sleep 0.1
	done
}

# shellcheck source=tests/beds/kubernetes/processes.sh
. "$HERE/processes.sh"
# shellcheck source=tests/beds/kubernetes/credentials.sh
. "$HERE/credentials.sh"
# shellcheck source=tests/beds/kubernetes/control.sh
. "$HERE/control.sh"
# shellcheck source=tests/beds/kubernetes/node.sh
. "$HERE/node.sh"

admin() {
	kubectl --kubeconfig "$RUN/kubeconfig" "$@"
}

start() {
	local count=$1 zones=$2 mode=$3 n
	[ -z "$(members)" ] || fail "a cluster is running in $DIR"
	mkdir -p "$DIR"
	end_part
	rm -rf "$RUN" "$DIR/log"
	mkdir -p "$DIR/log" "$RUN/pids" "$RUN/pki"
	chmod 700 "$RUN/pki"
	echo "$count" >"$RUN/count"
	echo "$zones" >"$RUN/zones"
	echo "$mode" >"$RUN/mode"
	cgroup_homes | sed "s,/*\$,/$NAME," >"$RUN/cgroups"
	credentials
	trap 'status=$?; [ "$status" = 0 ] || { echo "cluster.sh: see $DIR/log" >&2; end_part; }; exit "$status"' EXIT
	spawn control
	(
		enter_cgroups relay
		exec setsid "$BED_BIN/kubernetes" relay "$RUN/port" "/proc/$(cat "$RUN/pids/control")/ns/net" "$BRIDGE.1:443"
	) </dev/null &>"$DIR/log/relay.log" &
	until_true 30 "the relay" test -e "$RUN/port"
	kubeconfig "$RUN/kubeconfig" "127.0.0.1:$(cat "$RUN/port")" admin
	if [ "$mode" = real ]; then
		for ((n = 1; n <= count; n++)); do start_node "$n"; done
	fi
	until_true 180 "the control plane" test -e "$RUN/ready"
	if [ "$mode" = records ]; then
		for ((n = 1; n <= count; n++)); do record "$n"; done | admin create -f - >/dev/null
	fi
	until_true 60 "the default service account" admin get serviceaccount default
	for ((n = 1; n <= count; n++)); do
		until_true 180 "node-$n" node_ready "$n"
	done
}

# shellcheck disable=SC2317 # until_true calls it
node_ready() { # ready, and no longer marked as new
	[ "$(admin get node "node-$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}')" = True ]
}

load() {
	local name=$1 archive=$2 node job status=0 jobs=()
	for node in $(nodes); do
		load_into "$node" "$name" "$archive" &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do wait "$job" || status=1; done
	[ "$status" = 0 ] || fail "loading $name failed"
}

main() {
	local command=${1:?a command} part
	DIR=$(readlink -m "${2:?the folder of the cluster}")
	RUN=$DIR/run
	case "$DIR/ $BED_TOOLS/ $BED_BIN/" in
	/run/* | /var/lib/* | /var/log/* | *" /run/"* | *" /var/lib/"* | *" /var/log/"*)
		fail "a node has a /run, /var/lib and /var/log of its own: choose other folders"
		;;
	esac
	NAME=phalanx-bed-$(sha256sum <<<"$DIR" | cut -c1-12)
	shift 2
	case $command in
	start) start "$@" ;;
	stop)
		end_part
		rm -rf "$RUN"
		;;
	left)
		groups
		members
		;;
	load) load "$@" ;;
	inside) KUBECONFIG=$RUN/pki/admin.conf in_control "$@" ;;
	node-kill)
		pid_of "$1" >/dev/null
		end_part "$1"
		;;
	node-start)
		[ -z "$(members "$1")" ] || fail "$1 is running"
		start_node "${1#node-}"
		;;
	net-cut) in_control ip link set "$1" down ;;
	net-heal) in_control ip link set "$1" up ;;
	api-stop)
		touch "$RUN/api-stopped"
		for part in $(members control); do
			[ "$(cat "/proc/$part/comm" 2>/dev/null)" != kube-apiserver ] || kill -KILL "$part"
		done
		;;
	api-start) rm -f "$RUN/api-stopped" ;;
	processes) container_processes "$1" ;;
	_control) control ;;
	_node) node "$@" ;;
	*) fail "unknown command: $command" ;;
	esac
}

# One line, so that the file may change while this runs.
main "$@"; exit
