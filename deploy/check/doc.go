// Package check holds the chart, the plain manifests, the alert rules and the
// dashboard to what they promise: nobody is root, nothing secret stands in clear,
// each edge of the network is one that the settings name, and each setting and
// metric is one that the binary knows.
//
// `make test` looks at the manifests that are committed. `make deploy-check` gives
// HELM, and all value sets of the chart are looked at as well.
package check
