# Checks of the chart, the manifests, the alert rules and the dashboard. Included by the Makefile
# at the top.

HELM_VERSION := v3.22.0
KUBECONFORM_VERSION := v0.8.0
KUBE_SCORE_VERSION := v1.20.0
# The cluster that the charts are rendered for; that of tools/kube and tools/apiserver.
KUBE_VERSION := 1.36.3

HELM := .bin/helm-$(HELM_VERSION)
KUBECONFORM := .bin/kubeconform-$(KUBECONFORM_VERSION)
KUBE_SCORE := .bin/kube-score-$(KUBE_SCORE_VERSION)
PROMTOOL := .bin/promtool-$(shell cat tools/promtool/go.mod tools/promtool/go.sum | git hash-object --stdin | cut -c1-12)
KUBECTL := .bin/kubectl-v$(KUBE_VERSION)
KUBE_APISERVER := .bin/kube-apiserver-v$(KUBE_VERSION)
COMPOSE := .bin/compose-$(shell cat tools/compose/go.mod tools/compose/go.sum tools/compose/main.go | git hash-object --stdin | cut -c1-12)
ETCD := .bin/etcd-$(shell cat tools/etcd/go.mod tools/etcd/go.sum | git hash-object --stdin | cut -c1-12)
KUBE_SCHEMAS := .bin/kube-schemas-$(shell cat tools/kube/go.mod tools/kubeschemas/*.go deploy/deploy.mk | git hash-object --stdin | cut -c1-12)

CHART := deploy/helm/waybill
VALUE_SETS := $(wildcard $(CHART)/ci/*-values.yaml $(CHART)/sizes/*-values.yaml)
RENDER := $(HELM) template waybill $(CHART) --namespace waybill --kube-version $(KUBE_VERSION)
# Ignored checks conflict with the operator's choices: kube-score requires an image
# pull at every start, at least two pods, and strict anti-affinity between pods.
KUBE_SCORE_FLAGS := --ignore-test container-image-pull-policy --ignore-test deployment-replicas \
	--ignore-test deployment-has-host-podantiaffinity --enable-optional-test container-seccomp-profile \
	--enable-optional-test container-ports-check --kubernetes-version v1.36 --output-format ci

# $(call manifests,DIR) writes plain manifests: those of the chart, without what only Helm reads.
define manifests
rm -rf .bin/plain && mkdir -p $(1)
$(RENDER) -f $(CHART)/ci/manifests-values.yaml --output-dir .bin/plain > .bin/plain.log
for f in .bin/plain/waybill/templates/*.yaml; do \
	sed -e '/^ *helm\.sh\/chart:/d' -e '/^ *app\.kubernetes\.io\/managed-by:/d' -e '/^# Source:/d' $$f > $(1)/$$(basename $$f); \
done
endef

define deploy-check.all
go run ./tools/chartdocs -check $(CHART)
for f in $(VALUE_SETS); do $(HELM) lint --strict --quiet --kube-version $(KUBE_VERSION) $(CHART) -f $$f; done
rm -rf .bin/rendered && mkdir -p .bin/rendered
for f in $(VALUE_SETS); do $(RENDER) -f $$f > .bin/rendered/$$(basename $$f -values.yaml).yaml; done
$(KUBECONFORM) -strict -summary -schema-location '$(KUBE_SCHEMAS)/{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json' .bin/rendered deploy/manifests/[!k]*.yaml
for f in .bin/rendered/*.yaml; do \
	$(KUBE_SCORE) score $(KUBE_SCORE_FLAGS) $$f > .bin/score.txt || true; \
	grep -q '^\[OK\]' .bin/score.txt; \
	if grep -vE '^\[(OK|SKIPPED)\]' .bin/score.txt; then echo "kube-score rejects $$f"; exit 1; fi; \
done
$(PROMTOOL) check rules $(CHART)/files/waybill.rules.yaml
$(PROMTOOL) test rules deploy/prometheus/rules_test.yaml
rm -rf .bin/compose && mkdir -p .bin/compose && deploy/compose/init.sh .bin/compose
$(COMPOSE) .bin/compose/.env deploy/compose/compose.yaml
rm -rf .bin/manifests
$(call manifests,.bin/manifests)
diff -r -x kustomization.yaml -x namespace.yaml -x README.md .bin/manifests deploy/manifests
HELM=$(CURDIR)/$(HELM) KUBECONFORM=$(CURDIR)/$(KUBECONFORM) KUBE_SCHEMAS=$(CURDIR)/$(KUBE_SCHEMAS) $(GOTEST) -timeout 5m ./deploy/... ./tools/kubeschemas ./tools/chartdocs ./tools/sbom
endef
# Send the rendered objects to a real API server.
define deploy-check.apiserver
HELM=$(CURDIR)/$(HELM) KUBECTL=$(CURDIR)/$(KUBECTL) KUBE_APISERVER=$(CURDIR)/$(KUBE_APISERVER) ETCD=$(CURDIR)/$(ETCD) CRDS=$(CURDIR)/$(KUBE_SCHEMAS)/crds $(GOTEST) -timeout 10m -v -run TestAPIServer ./deploy/check
endef
# Build the content of the image twice, in two places, and compare.
define deploy-check.image
BUILD_TWICE=1 $(GOTEST) -timeout 20m -v -run TestImage ./deploy/check
endef
DEPLOY_TOOLS := $(HELM) $(KUBE_SCHEMAS)
DEPLOY_TOOLS_all := $(KUBECONFORM) $(KUBE_SCORE) $(PROMTOOL) $(COMPOSE)
DEPLOY_TOOLS_apiserver := $(KUBECTL) $(KUBE_APISERVER) $(ETCD)

.PHONY: deploy-check
deploy-check: build $(DEPLOY_TOOLS) $(DEPLOY_TOOLS_$(or $(ONLY),all)) ## check chart, manifests, alert rules and dashboard; ONLY=apiserver: by a real API server, ONLY=image: build twice
	$(call part,deploy-check)

$(HELM):
	GOBIN=$(CURDIR)/.bin go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv .bin/helm $@

$(KUBECONFORM):
	GOBIN=$(CURDIR)/.bin go install github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_VERSION)
	mv .bin/kubeconform $@

$(KUBE_SCORE):
	GOBIN=$(CURDIR)/.bin go install github.com/zegl/kube-score/cmd/kube-score@$(KUBE_SCORE_VERSION)
	mv .bin/kube-score $@

# Without the code that finds targets in clouds: rules need none.
$(PROMTOOL):
	GOWORK=off go -C tools/promtool build -tags remove_all_sd -ldflags "-s -w" -o $(CURDIR)/$@ github.com/prometheus/prometheus/cmd/promtool

$(COMPOSE):
	GOWORK=off go -C tools/compose build -ldflags "-s -w" -o $(CURDIR)/$@ .

# Without its version the server would say that it is v0.0.0.
KUBE_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
$(KUBECTL) $(KUBE_APISERVER): tools/apiserver/go.mod
	GOWORK=off go -C tools/apiserver build -ldflags "$(KUBE_LDFLAGS)" -o $(CURDIR)/$@ k8s.io/kubernetes/cmd/$(patsubst .bin/%-v$(KUBE_VERSION),%,$@)
	touch $@

$(ETCD):
	GOWORK=off go -C tools/etcd build -ldflags "-s -w" -o $(CURDIR)/$@ go.etcd.io/etcd/server/v3

# From the modules that publish them; go.sum says that they are the same as ever.
$(KUBE_SCHEMAS): tools/kube/go.mod
	from() { \
		v=$$(awk -v m="$$1" '$$1 == m {print $$2}' tools/kube/go.mod); \
		GOWORK=off go -C tools/kube mod download "$$1@$$v"; \
		echo "$$(go env GOMODCACHE)/$$1@$$v"; \
	}; \
	kubernetes=$$(from k8s.io/kubernetes); keda=$$(from github.com/kedacore/keda/v2); \
	operator=$$(from github.com/prometheus-operator/prometheus-operator)/example/prometheus-operator-crd; \
	rm -rf $@ && mkdir -p $@/crds; \
	for f in $$keda/config/crd/bases/keda.sh_scaledobjects.yaml $$operator/monitoring.coreos.com_{servicemonitors,prometheusrules}.yaml; do \
		cat $$f > $@/crds/$$(basename $$f); \
	done; \
	go run ./tools/kubeschemas -out $@ -swagger $$kubernetes/api/openapi-spec/swagger.json $@/crds/*.yaml
