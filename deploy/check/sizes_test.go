package check

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/scalesim"
)

// Figures of the docs: the memory of a gateway without clients and per client (docs/streams.md),
// PostgreSQL's frame rate (docs/scaling.md), and a dispatcher's default run limit.
const (
	gatewayBytes, clientBytes = 68e6, 80 << 10
	postgresFrames            = 6000
	maxRuns                   = 1024
)

// quantity parses a Kubernetes quantity, in cores or bytes.
func quantity(t *testing.T, text string) float64 {
	t.Helper()
	for _, u := range []struct {
		suffix string
		times  float64
	}{{"m", 1e-3}, {"MiB", 1 << 20}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40}, {"", 1}} {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			v, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err, text)
			return v * u.times
		}
	}
	return 0
}

// costs returns the measured costs and the assumed day.
func costs(t *testing.T) (scalesim.Measured, scalesim.Day) {
	t.Helper()
	m, err := scalesim.Checked(source(t, "../../bench/report.md"))
	require.NoError(t, err)
	return m, scalesim.Billion()
}

// requireRow checks a row of the Kubernetes page against the values.
func requireRow(t *testing.T, of scalesim.Size, name, cell string) {
	t.Helper()
	at := 0
	for i, z := range scalesim.Sizes() {
		if z.Name == of.Name {
			at = i
		}
	}
	for line := range strings.Lines(source(t, "../../docs/kubernetes.md")) {
		cells := strings.Split(line, "|")
		if len(cells) > at+2 && strings.TrimSpace(cells[1]) == name && strings.Contains(line, "CPU") {
			require.Equal(t, cell, strings.TrimSpace(cells[at+2]), "docs/kubernetes.md, %s, %s", name, of.Name)
			return
		}
	}
	require.Fail(t, "docs/kubernetes.md has no row "+name)
}

// The values of a size carry its load, with a reserve and one pod down, and the page shows them.
func TestSizes_CarryWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	m, d := costs(t)
	for _, z := range scalesim.Sizes() {
		t.Run(z.Name, func(t *testing.T) {
			t.Parallel()
			need := m.Needs(d, z)
			s := render(t, filepath.Join(chart, "sizes", z.Name+"-values.yaml"))
			for _, o := range s.of("Deployment") {
				v := spec[deployment](t, o)
				c := v.Template.Spec.Containers[0]
				pods, cpu, memory := *v.Replicas, quantity(t, c.Resources.Limits["cpu"]), quantity(t, c.Resources.Limits["memory"])
				left := float64(max(1, pods-1))
				cores, requested := left*cpu, float64(pods)*quantity(t, c.Resources.Requests["cpu"])
				switch o.service() {
				case "eventlog":
					cores, requested = cpu, quantity(t, c.Resources.Requests["cpu"])
				case "gateway": // GOMEMLIMIT is a million bytes for each MiB
					require.LessOrEqual(t, gatewayBytes+clientBytes*z.Clients/left, memory/(1<<20)*1e6)
				case "dispatcher":
					require.LessOrEqual(t, need.HandedOut, left*maxRuns)
					require.LessOrEqual(t, need.HandedOut*(1+d.Spare), handedOut(t, settings(t, s, "dispatcher")))
				}
				require.LessOrEqual(t, need.Cores[o.service()]/(1-d.Spare), cores, o.service())
				require.LessOrEqual(t, need.Cores[o.service()], requested, "%s: requests must equal limits", o.service())
				name := strings.Replace(o.service(), "eventlog", "event log", 1)
				requireRow(t, z, name, fmt.Sprintf("%d × %g CPU, %s", pods, cpu, c.Resources.Limits["memory"]))
			}
			if settings(t, s, "eventlog")["postgres-schema"] != "" {
				require.LessOrEqual(t, need.Frames, float64(postgresFrames))
			}
			require.LessOrEqual(t, need.Frames, m.FramesPerSec(d))
		})
	}
}

func handedOut(t *testing.T, settings map[string]string) float64 {
	t.Helper()
	if text := settings["max-handed-out"]; text != "" {
		return quantity(t, text)
	}
	return scalesim.Default
}

// natsValues are a size's changes to the values of NATS' chart.
type natsValues struct {
	Config struct {
		Cluster struct {
			Replicas int `yaml:"replicas"`
		} `yaml:"cluster"`
		JetStream struct {
			FileStore struct {
				PVC struct {
					Size string `yaml:"size"`
				} `yaml:"pvc"`
			} `yaml:"fileStore"`
		} `yaml:"jetstream"`
	} `yaml:"config"`
	Container struct {
		Env struct {
			Limit string `yaml:"GOMEMLIMIT"`
		} `yaml:"env"`
		Merge struct {
			Resources struct {
				Requests map[string]string `yaml:"requests"`
				Limits   map[string]string `yaml:"limits"`
			} `yaml:"resources"`
		} `yaml:"merge"`
	} `yaml:"container"`
}

// Each NATS server has room for the size's stored runs: twice their index in memory, all frames on
// disk.
func TestSizes_NATSHasRoomForTheRunsThatAreKept(t *testing.T) {
	t.Parallel()
	m, d := costs(t)
	for _, z := range scalesim.Sizes() {
		var v natsValues
		require.NoError(t, yaml.Unmarshal([]byte(source(t, "../nats/values.yaml")), &v))
		if z.Name != "small" {
			require.NoError(t, yaml.Unmarshal([]byte(source(t, "../nats/"+z.Name+"-values.yaml")), &v))
		}
		need, memory, cpu := m.Needs(d, z), v.Container.Merge.Resources.Limits["memory"], v.Container.Merge.Resources.Limits["cpu"]
		limit := quantity(t, v.Container.Env.Limit)
		require.LessOrEqual(t, 2*need.Index, limit, z.Name)
		require.LessOrEqual(t, limit, 0.9*quantity(t, memory), "%s: what Go does not see needs room, too", z.Name)
		require.LessOrEqual(t, need.Log, quantity(t, v.Config.JetStream.FileStore.PVC.Size), z.Name)
		require.LessOrEqual(t, need.Cores["nats"]/(1-d.Spare), quantity(t, cpu), z.Name)
		require.Equal(t, v.Container.Merge.Resources.Requests, v.Container.Merge.Resources.Limits, z.Name)
		requireRow(t, z, "NATS", fmt.Sprintf("%d × %s CPU, %s, disk %s", v.Config.Cluster.Replicas, cpu, memory, v.Config.JetStream.FileStore.PVC.Size))
	}
}
