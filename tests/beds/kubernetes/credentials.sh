# shellcheck shell=bash disable=SC2154 # cluster.sh sets what is not set here
# certificate NAME SUBJECT [openssl flags]: of the cluster's own CA.
certificate() {
	local name=$1 subject=$2
	shift 2
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
		-config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') -subj "$subject" \
		-keyout "$RUN/pki/$name.key" -out "$RUN/pki/$name.crt" "$@" 2>/dev/null
}

leaf() {
	local name=$1 subject=$2
	shift 2
	certificate "$name" "$subject" -CA "$RUN/pki/ca.crt" -CAkey "$RUN/pki/ca.key" \
		-addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth,clientAuth "$@"
}

# kubeconfig FILE SERVER CERTIFICATE
kubeconfig() {
	cat >"$1" <<-EOT
		apiVersion: v1
		kind: Config
		clusters: [{name: bed, cluster: {server: "https://$2", certificate-authority-data: $(base64 -w0 "$RUN/pki/ca.crt")}}]
		users: [{name: $3, user: {client-certificate-data: $(base64 -w0 "$RUN/pki/$3.crt"), client-key-data: $(base64 -w0 "$RUN/pki/$3.key")}}]
		contexts: [{name: bed, context: {cluster: bed, user: $3}}]
		current-context: bed
	EOT
	chmod 600 "$1"
}

credentials() {
	local part domain=cluster.local
	certificate ca /CN=phalanx-bed -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
	leaf apiserver /O=system:masters/CN=kube-apiserver -addext \
		"subjectAltName=IP:127.0.0.1,IP:$BRIDGE.1,IP:$SERVICES.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.$domain"
	leaf aggregator /CN=aggregator
	leaf admin /O=system:masters/CN=admin
	kubeconfig "$RUN/pki/admin.conf" "$BRIDGE.1" admin
	for part in kube-controller-manager kube-scheduler; do
		leaf "$part" "/CN=system:$part"
		kubeconfig "$RUN/pki/$part.conf" "$BRIDGE.1" "$part"
	done
	openssl ecparam -name prime256v1 -genkey -noout -out "$RUN/pki/accounts.key"
}
