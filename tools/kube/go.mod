module waybill.dev/waybill/tools/kube

go 1.26.0

require (
	github.com/kedacore/keda/v2 v2.21.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	k8s.io/kubernetes v1.36.3
)
