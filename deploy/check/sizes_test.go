package check

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
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

// needs are computed from measurements, see bench/scalesim.
type needs struct {
	// Spare is the reserve, as a share of each limit.
	Spare               float64 `json:"spare"`
	MaxFramesPerSec     float64 `json:"maxFramesPerSec"`
	DefaultMaxHandedOut float64 `json:"defaultMaxHandedOut"`
	Sizes               []size  `json:"sizes"`
}

// size is a load for which there are values, and what it needs without a reserve. Cores are those
// of all replicas together, but of one event log and of one NATS server.
type size struct {
	Name         string             `json:"name"`
	Clients      float64            `json:"clients"`
	HandedOut    float64            `json:"handedOut"`
	FramesPerSec float64            `json:"framesPerSec"`
	Cores        map[string]float64 `json:"cores"`
	IndexBytes   float64            `json:"indexBytes"`
	LogBytes     float64            `json:"logBytes"`
}

func readNeeds(t *testing.T) needs {
	t.Helper()
	var n needs
	require.NoError(t, json.Unmarshal([]byte(source(t, "../../bench/scalesim/needs.json")), &n))
	require.Positive(t, n.MaxFramesPerSec)
	require.Len(t, n.Sizes, 3)
	return n
}

// requireRow checks a row of the Kubernetes page against the values.
func requireRow(t *testing.T, of size, name, cell string) {
	t.Helper()
	at := slices.IndexFunc(readNeeds(t).Sizes, func(z size) bool { return z.Name == of.Name })
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
	needs := readNeeds(t)
	for _, z := range needs.Sizes {
		t.Run(z.Name, func(t *testing.T) {
			t.Parallel()
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
					require.LessOrEqual(t, z.HandedOut, left*maxRuns)
					require.LessOrEqual(t, z.HandedOut*(1+needs.Spare), needs.maxHandedOut(t, settings(t, s, "dispatcher")))
				}
				require.Contains(t, z.Cores, o.service())
				require.LessOrEqual(t, z.Cores[o.service()]/(1-needs.Spare), cores, o.service())
				require.LessOrEqual(t, z.Cores[o.service()], requested, "%s: requests must equal limits", o.service())
				name := strings.Replace(o.service(), "eventlog", "event log", 1)
				requireRow(t, z, name, fmt.Sprintf("%d × %g CPU, %s", pods, cpu, c.Resources.Limits["memory"]))
			}
			if settings(t, s, "eventlog")["postgres-schema"] != "" {
				require.LessOrEqual(t, z.FramesPerSec, float64(postgresFrames))
			}
			require.LessOrEqual(t, z.FramesPerSec, needs.MaxFramesPerSec)
		})
	}
}

// maxHandedOut is the limit that a dispatcher's settings set.
func (n needs) maxHandedOut(t *testing.T, settings map[string]string) float64 {
	t.Helper()
	if text := settings["max-handed-out"]; text != "" {
		return quantity(t, text)
	}
	return n.DefaultMaxHandedOut
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
	needs := readNeeds(t)
	for _, z := range needs.Sizes {
		var v natsValues
		require.NoError(t, yaml.Unmarshal([]byte(source(t, "../nats/values.yaml")), &v))
		if z.Name != "small" {
			require.NoError(t, yaml.Unmarshal([]byte(source(t, "../nats/"+z.Name+"-values.yaml")), &v))
		}
		memory, cpu := v.Container.Merge.Resources.Limits["memory"], v.Container.Merge.Resources.Limits["cpu"]
		limit := quantity(t, v.Container.Env.Limit)
		require.LessOrEqual(t, 2*z.IndexBytes, limit, z.Name)
		require.LessOrEqual(t, limit, 0.9*quantity(t, memory), "%s: what Go does not see needs room, too", z.Name)
		require.LessOrEqual(t, z.LogBytes, quantity(t, v.Config.JetStream.FileStore.PVC.Size), z.Name)
		require.LessOrEqual(t, z.Cores["nats"]/(1-needs.Spare), quantity(t, cpu), z.Name)
		require.Equal(t, v.Container.Merge.Resources.Requests, v.Container.Merge.Resources.Limits, z.Name)
		requireRow(t, z, "NATS", fmt.Sprintf("%d × %s CPU, %s, disk %s", v.Config.Cluster.Replicas, cpu, memory, v.Config.JetStream.FileStore.PVC.Size))
	}
}
