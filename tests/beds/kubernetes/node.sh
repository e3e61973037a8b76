# shellcheck shell=bash disable=SC2154 # cluster.sh sets what is not set here
# start_node N: its files, its namespaces, and its cable to the bridge.
start_node() {
	local n=$1 node=node-$1 disk pid
	disk=$RUN/$node/kube
	if [ ! -d "$disk" ]; then
		mkdir -p "$disk/cni" "$disk/sysctl" "$DIR/log/$node"
		leaf "$node" "/O=system:nodes/CN=system:node:$node"
		node_files "$n" "$disk"
	fi
	spawn "$node" --cgroup
	pid=$(pid_of "$node")
	in_control sh -c "ip link delete $node 2>/dev/null; ip link add $node type veth peer name eth0 netns $pid && ip link set $node master br0 up && ip route replace $PODS.$n.0/24 via $BRIDGE.$((10 + n))"
}

node_files() {
	local n=$1 disk=$2
	cp "$RUN/pki/ca.crt" "$disk/ca.crt"
	kubeconfig "$disk/kubeconfig" "$BRIDGE.1" "node-$n"
	: >"$disk/resolv.conf" # a pull of an image that is not here fails at once
	cat >"$disk/kubelet.yaml" <<-EOT
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /var/lib/kube/ca.crt}}
		authorization: {mode: Webhook}
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		cgroupDriver: cgroupfs
		failCgroupV1: false
		failSwapOn: false
		oomScoreAdj: 0
		maxOpenFiles: $(ulimit -Hn)
		clusterDomain: cluster.local
		clusterDNS: ["$SERVICES.10"]
		resolvConf: /var/lib/kube/resolv.conf
		nodeStatusUpdateFrequency: 2s
		nodeLeaseDurationSeconds: 12
		evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
		imageGCHighThresholdPercent: 100
		registerNode: true
	EOT
	# Without CAP_SYS_RESOURCE, nobody may make a process less likely to be killed.
	cat >"$disk/containerd.toml" <<-EOT
		version = 2
		disabled_plugins = ["io.containerd.internal.v1.opt"]
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "localhost/pause:1"
		  restrict_oom_score_adj = true
		  disable_apparmor = true
		[plugins."io.containerd.grpc.v1.cri".cni]
		  bin_dir = "$BED_TOOLS/usr/lib/cni"
		  conf_dir = "/var/lib/kube/cni"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		  runtime_type = "io.containerd.runc.v2"
		  base_runtime_spec = "/var/lib/kube/spec.json"
	EOT
	container_spec >"$disk/spec.json"
	cat >"$disk/cni/pods.conflist" <<-EOT
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [
		  {"type": "bridge", "bridge": "pods", "isGateway": true,
		   "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam", "ranges": [[{"subnet": "$PODS.$n.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	EOT
	# What the kubelet would set in the machine's kernel: it finds these values, and leaves the machine's as they are.
	printf '%s\n' "vm/overcommit_memory 1" "vm/panic_on_oom 0" "kernel/panic 10" "kernel/panic_on_oops 1" \
		"kernel/keys/root_maxkeys 1000000" "kernel/keys/root_maxbytes 25000000" >"$disk/sysctl/list"
}

# What every container begins from. Folders of BED_MOUNTS are in it, so that they are as good as part of each image:
# a restricted pod may have no hostPath, and TensorFlow in an image costs 10 GB and minutes.
container_spec() {
	local mounts='' folder place
	while read -r folder place; do
		[ -z "$folder" ] ||
			mounts+=$(printf '{"destination": "%s", "type": "bind", "source": "%s", "options": ["rbind", "ro", "nosuid", "nodev"]},' "$place" "$folder")
	done <<<"${BED_MOUNTS:-}"
	ctr oci spec | awk -v "mounts=$mounts" '{ print } /^    "mounts": \[$/ { print mounts }'
}

# What runs as the first process of a node's namespaces.
node() {
	local n=${1#node-} disk=$RUN/$1 other mount options key value
	hostname "$1"
	# The machine's cgroups are replaced by the part of them that is the node's: kubelet and runc see one root.
	while read -r mount options; do
		umount "$mount"
		mount -t cgroup -o "$options" cgroup "$mount"
	done < <(awk '$3 == "cgroup" { n = split($4, o, ","); s = ""
		for (i = 1; i <= n; i++) if (o[i] !~ /^(rw|relatime|nosuid|nodev|noexec|xattr|clone_children)$/) s = s (s == "" ? "" : ",") o[i]
		print $2, s }' /proc/self/mounts)
	while read -r mount; do
		umount "$mount"
		mount -t cgroup2 cgroup2 "$mount"
	done < <(awk '$3 == "cgroup2" { print $2 }' /proc/self/mounts)
	while read -r key value; do
		mkdir -p "$disk/kube/sysctl/$key"
		echo "$value" >"$disk/kube/sysctl/$key/value"
		mount --bind "$disk/kube/sysctl/$key/value" "/proc/sys/$key"
	done <"$disk/kube/sysctl/list"
	mount --bind "$disk/kube/resolv.conf" /etc/resolv.conf
	mount --bind "$DIR/log/$1" /var/log
	mount --bind "$disk" /var/lib
	mount -t tmpfs -o mode=755 tmpfs /run
	mount --make-rshared /
	until_true 30 "the cable" ip link set eth0 up
	ip link set lo up
	ip address add "$BRIDGE.$((10 + n))/24" dev eth0
	ip route add default via "$BRIDGE.1"
	for ((other = 1; other <= $(cat "$RUN/count"); other++)); do
		[ "$other" = "$n" ] || ip route add "$PODS.$other.0/24" via "$BRIDGE.$((10 + other))"
	done
	echo 1 >/proc/sys/net/ipv4/ip_forward
	cd /
	containerd --config /var/lib/kube/containerd.toml &>/var/log/containerd.log &
	until_true 60 "containerd" ctr -a /run/containerd/containerd.sock version
	ctr -a /run/containerd/containerd.sock -n k8s.io images import "$BED_PAUSE" >/dev/null
	until_true 180 "the API server" test -e "$RUN/ready"
	kubelet --config /var/lib/kube/kubelet.yaml --kubeconfig /var/lib/kube/kubeconfig \
		--hostname-override "$1" --node-ip "$BRIDGE.$((10 + n))" \
		--node-labels "topology.kubernetes.io/zone=$(zone "$n")" &>/var/log/kubelet.log &
	wait -n || true
	echo "a part of the node ended" >&2
}

# load_into NODE NAME ARCHIVE: load an image, and name it NAME.
load_into() {
	local ctr pid loaded
	pid=$(pid_of "$1")
	ctr=(nsenter -t "$pid" -m -n "$BED_TOOLS/usr/bin/ctr" -a /run/containerd/containerd.sock -n k8s.io images)
	loaded=$("${ctr[@]}" import --digests --base-name import.bed/image - <"$3" |
		sed -n 's/^unpacking \(import.bed[^ ]*\) .*/\1/p' | head -n 1)
	[ -n "$loaded" ] || return 1
	"${ctr[@]}" tag --force "$loaded" "$2" >/dev/null
	"${ctr[@]}" remove "$loaded" >/dev/null
}
