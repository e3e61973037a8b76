# shellcheck shell=bash disable=SC2154 # cluster.sh sets what is not set here
# The cluster's processes are in cgroups of its name, below the caller's own in each hierarchy: what `stop` ends is
# exactly what these hold.
cgroup_homes() {
	awk 'FNR == NR { split($0, part, ":"); home[part[2]] = substr($0, length(part[1] part[2]) + 3); next }
		$3 == "cgroup2" && ("" in home) { print $2 home[""] }
		$3 == "cgroup" { for (set in home) if (set != "" && index("," $4 ",", "," set ",")) print $2 home[set] }' \
		/proc/self/cgroup /proc/self/mounts
}

# enter_cgroups PART: move this shell into the part's cgroups.
enter_cgroups() {
	local top group file
	while read -r top; do
		for group in "$top" "$top/$1"; do
			mkdir -p "$group"
			for file in cpuset.cpus cpuset.mems; do
				[ ! -e "$group/$file" ] || [ -n "$(cat "$group/$file")" ] || cat "${group%/*}/$file" >"$group/$file"
			done
		done
		echo "$BASHPID" >"$group/cgroup.procs"
	done <"$RUN/cgroups"
}

# groups [PART]: the cgroups of a part or, with none named, of the cluster; by name, so that they are found when DIR is
# gone.
groups() {
	local top mounts
	mapfile -t mounts < <(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/self/mounts)
	find "${mounts[@]}" -maxdepth 5 -type d -name "$NAME" -prune 2>/dev/null | while read -r top; do
		top=$top${1:+/$1}
		[ ! -d "$top" ] || echo "$top"
	done
}

# members [PART]: the pids in them.
members() {
	local dirs
	mapfile -t dirs < <(groups "$@")
	[ ${#dirs[@]} -eq 0 ] || find "${dirs[@]}" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un
}

# end_part [PART]: end a part, or the whole cluster, and remove its cgroups.
end_part() {
	local left pids end=$((SECONDS + 30))
	while mapfile -t left < <(groups "$@") && [ ${#left[@]} -gt 0 ]; do
		mapfile -t pids < <(members "$@")
		[ "$SECONDS" -lt "$end" ] || fail "cannot end ${left[*]}: ${pids[*]}"
		[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
		find "${left[@]}" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
	done
}

# spawn PART UNSHARE_FLAGS ...: run `_PART` of cluster.sh as the first process of new namespaces; when that one ends, so
# does all that is in them.
spawn() {
	local part=$1 parent
	shift
	(
		enter_cgroups "$part"
		exec setsid unshare --net --mount --pid --uts --ipc --mount-proc --fork --kill-child "$@" \
			"$BASH" "$SELF" "_${part%%-*}" "$DIR" "$part"
	) </dev/null >"$DIR/log/$part.log" 2>&1 &
	parent=$!
	until_true 30 "$part" first_child "$parent"
	first_child "$parent" >"$RUN/pids/$part"
}

first_child() { # of an unshare that has made its namespaces
	[ "$(cat "/proc/$1/comm")" = unshare ] && grep -o '^[0-9]*' "/proc/$1/task/$1/children"
}

# pid_of PART: the pid of its first process, checked to be ours still.
pid_of() {
	local pid
	pid=$(cat "$RUN/pids/$1" 2>/dev/null) || fail "$1 is not running"
	grep -q "/$NAME/$1\$" "/proc/$pid/cgroup" 2>/dev/null || fail "$1 is not running"
	echo "$pid"
}

nodes() {
	find "$RUN/pids" -name 'node-*' -printf '%f\n' | sort -V
}

in_control() {
	local pid
	pid=$(pid_of control)
	nsenter -t "$pid" -n "$@"
}

# container_processes ID: its pids, and its memory cgroup in the last line.
container_processes() {
	local dirs
	mapfile -t dirs < <(groups)
	mapfile -t dirs < <(find "${dirs[@]}" -type d -name "*$1*")
	[ ${#dirs[@]} -gt 0 ] || fail "no container $1 runs here"
	find "${dirs[@]}" -name cgroup.procs -exec cat {} + | sort -un
	for top in "${dirs[@]}"; do
		[ ! -e "$top/memory.limit_in_bytes" ] && [ ! -e "$top/memory.max" ] || { echo "$top" && break; }
	done
}
