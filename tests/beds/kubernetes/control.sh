# shellcheck shell=bash disable=SC2154 # cluster.sh sets what is not set here
# What runs as the first process of the control plane's namespaces.
control() {
	local pki=$RUN/pki grace=16s
	# Records have no kubelet that says it is alive.
	[ "$(cat "$RUN/mode")" = real ] || grace=24h0m0s
	ip link set lo up
	ip address add "$SERVICES.1/32" dev lo
	ip address add "$SERVICES.10/32" dev lo
	ip link add br0 type bridge
	ip address add "$BRIDGE.1/24" dev br0
	ip link set br0 up
	etcd --data-dir "$RUN/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380 &>"$DIR/log/etcd.log" &
	serve_api &
	until_true 180 "the API server" kubectl --kubeconfig "$pki/admin.conf" get --raw /readyz
	# The default of 20 requests a second takes 7 s for the accounts that each controller makes for itself.
	kube-controller-manager --kubeconfig "$pki/kube-controller-manager.conf" --leader-elect=false \
		--use-service-account-credentials --service-account-private-key-file "$pki/accounts.key" --root-ca-file "$pki/ca.crt" \
		--cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" \
		--node-monitor-period 1s --node-monitor-grace-period "$grace" --kube-api-qps 500 --kube-api-burst 500 \
		&>"$DIR/log/kube-controller-manager.log" &
	kube-scheduler --kubeconfig "$pki/kube-scheduler.conf" --leader-elect=false &>"$DIR/log/kube-scheduler.log" &
	cat >"$RUN/Corefile" <<-EOT
		.:53 {
		  bind $SERVICES.10
		  errors
		  cache 2
		  kubernetes cluster.local in-addr.arpa {
		    kubeconfig $pki/admin.conf bed
		    ttl 2
		  }
		}
	EOT
	coredns -quiet -conf "$RUN/Corefile" &>"$DIR/log/coredns.log" &
	touch "$RUN/ready"
	wait -n || true
	echo "a part of the control plane ended" >&2
}

# The API server, again after each `api-stop` and `api-start`. Node names resolve nowhere, hence InternalIP; webhooks
# and aggregated APIs are reached at their endpoints, since there is no kube-proxy.
serve_api() {
	local pki=$RUN/pki
	while :; do
		if [ -e "$RUN/api-stopped" ]; then
			sleep 0.1
			continue
		fi
		kube-apiserver --etcd-servers http://127.0.0.1:2379 \
			--secure-port 443 --advertise-address "$BRIDGE.1" --service-cluster-ip-range "$SERVICES.0/24" \
			--tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" --client-ca-file "$pki/ca.crt" \
			--kubelet-client-certificate "$pki/apiserver.crt" --kubelet-client-key "$pki/apiserver.key" \
			--kubelet-preferred-address-types InternalIP --enable-aggregator-routing \
			--service-account-issuer https://kubernetes.default.svc.cluster.local \
			--service-account-key-file "$pki/accounts.key" --service-account-signing-key-file "$pki/accounts.key" \
			--requestheader-client-ca-file "$pki/ca.crt" --requestheader-allowed-names aggregator \
			--requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
			--requestheader-extra-headers-prefix X-Remote-Extra- \
			--proxy-client-cert-file "$pki/aggregator.crt" --proxy-client-key-file "$pki/aggregator.key" \
			--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
			--default-not-ready-toleration-seconds 10 --default-unreachable-toleration-seconds 10 \
			&>>"$DIR/log/kube-apiserver.log" || true
		[ -e "$RUN/api-stopped" ] || return 1
	done
}

# record N: a node that only the API server knows, always ready.
record() {
	local now
	now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	cat <<-EOT
		---
		apiVersion: v1
		kind: Node
		metadata:
		  name: node-$1
		  labels: {kubernetes.io/hostname: node-$1, kubernetes.io/os: linux, kubernetes.io/arch: amd64, topology.kubernetes.io/zone: $(zone "$1")}
		status:
		  capacity: &size {cpu: "16", memory: 64Gi, pods: "110", ephemeral-storage: 100Gi}
		  allocatable: *size
		  conditions: [{type: Ready, status: "True", reason: Record, lastHeartbeatTime: "$now", lastTransitionTime: "$now"}]
	EOT
}

zone() {
	echo "zone-$((($1 - 1) % $(cat "$RUN/zones") + 1))"
}
