// Package check verifies the chart, the plain manifests, the alert rules and the dashboard: no
// container runs as root, no secret is in clear text, every network edge matches a setting, and
// every setting and metric exists in the binary.
//
// `make test` checks the committed manifests. `make deploy-check` sets HELM and also checks all
// value sets of the chart.
package check
