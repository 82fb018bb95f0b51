package check

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/queue"
)

type scaler struct {
	Target struct {
		Kind string `yaml:"kind"`
		Name string `yaml:"name"`
	} `yaml:"scaleTargetRef"`
	Min      int `yaml:"minReplicas"`
	Max      int `yaml:"maxReplicas"`
	MinCount int `yaml:"minReplicaCount"`
	MaxCount int `yaml:"maxReplicaCount"`
	// Cooldown applies before the last pod ends, which never happens.
	Cooldown *int `yaml:"cooldownPeriod"`
	Advanced struct {
		HPA struct {
			Behavior behavior `yaml:"behavior"`
		} `yaml:"horizontalPodAutoscalerConfig"`
		Modifiers struct {
			Formula string `yaml:"formula"`
			Target  string `yaml:"target"`
			Type    string `yaml:"metricType"`
		} `yaml:"scalingModifiers"`
	} `yaml:"advanced"`
	Behavior behavior `yaml:"behavior"`
	Triggers []struct {
		Type     string            `yaml:"type"`
		Name     string            `yaml:"name"`
		Metadata map[string]string `yaml:"metadata"`
	} `yaml:"triggers"`
}

type behavior struct {
	ScaleDown struct {
		Calm int `yaml:"stabilizationWindowSeconds"`
	} `yaml:"scaleDown"`
}

// Only one of Deployment, HPA and KEDA sets the number of pods.
func TestScaling_HasOneMaster(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		masters := map[string]int{}
		for _, o := range s.of("Deployment") {
			if spec[deployment](t, o).Replicas != nil {
				masters[o.Metadata.Name]++
			}
		}
		for _, o := range slices.Concat(s.of("HorizontalPodAutoscaler"), s.of("ScaledObject")) {
			v := spec[scaler](t, o)
			require.Equal(t, "Deployment", v.Target.Kind, o.name())
			require.LessOrEqual(t, v.Min+v.MinCount, v.Max+v.MaxCount, o.name())
			masters[v.Target.Name]++
		}
		for _, o := range s.of("Deployment") {
			require.Equal(t, 1, masters[o.Metadata.Name], o.name())
			delete(masters, o.Metadata.Name)
		}
		require.Empty(t, masters, "nothing is there to be scaled")
	})
}

// Scaling never goes to zero: a run starts with a call to a dispatcher, so without one KEDA's queue
// would not grow. KEDA's cooldown applies only to the last pod; before that the HPA's stabilization
// applies.
func TestScaling_LeavesAPodAndWaitsForCalm(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range slices.Concat(s.of("HorizontalPodAutoscaler"), s.of("ScaledObject")) {
			v := spec[scaler](t, o)
			require.Positive(t, v.Min+v.MinCount, o.name())
			require.Nil(t, v.Cooldown, o.name())
			require.Equal(t, 300, v.Behavior.ScaleDown.Calm+v.Advanced.HPA.Behavior.ScaleDown.Calm, o.name())
		}
	})
	out, messages, ok := template(t, "-f", filepath.Join(chart, "ci", "ha-values.yaml"), "--set", "dispatcher.autoscaling.behavior.scaleDown.stabilizationWindowSeconds=900")
	require.True(t, ok, messages)
	for _, o := range parse(t, []byte(out)).of("ScaledObject") {
		require.Equal(t, 900, spec[scaler](t, o).Advanced.HPA.Behavior.ScaleDown.Calm, o.name())
	}
}

// KEDA adds the dispatchers' queue and their waiting runs, by the dispatchers' consumers.
func TestScaling_IsByTheDispatchersQueue(t *testing.T) {
	t.Parallel()
	seen := false
	eachSet(t, func(t *testing.T, s set) {
		for _, o := range s.of("ScaledObject") {
			seen = true
			require.Equal(t, "dispatcher", o.service())
			v := spec[scaler](t, o)
			require.Len(t, v.Triggers, 2)
			backlog, parked := v.Triggers[0], v.Triggers[1]
			for _, trigger := range v.Triggers {
				require.Equal(t, "nats-jetstream", trigger.Type)
				require.Equal(t, v.Advanced.Modifiers.Target, trigger.Metadata["lagThreshold"])
			}
			require.Equal(t, backlog.Name+" + "+parked.Name, v.Advanced.Modifiers.Formula)
			require.Equal(t, "AverageValue", v.Advanced.Modifiers.Type, "a number for each dispatcher")
			require.Equal(t, subject.Stream, backlog.Metadata["stream"])
			require.Contains(t, source(t, "../../internal/runlog/jetstream/queue.go"), `queueName = "`+backlog.Metadata["consumer"]+`"`)
			require.Equal(t, "KV_"+queue.Bucket, parked.Metadata["stream"])
			require.Equal(t, queue.ScalingConsumer, parked.Metadata["consumer"])
		}
	})
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() && !seen {
			t.Log("no set has a ScaledObject; `make deploy-check` renders one")
		}
	})
}

// A budget on a single pod would block each drain.
func TestBudgets_AreWhereThereIsMoreThanOnePod(t *testing.T) {
	t.Parallel()
	eachSet(t, func(t *testing.T, s set) {
		fewest := map[string]int{}
		for _, o := range s.of("Deployment") {
			if n := spec[deployment](t, o).Replicas; n != nil {
				fewest[o.service()] = *n
			}
		}
		for _, o := range slices.Concat(s.of("HorizontalPodAutoscaler"), s.of("ScaledObject")) {
			v := spec[scaler](t, o)
			fewest[o.service()] = v.Min + v.MinCount
		}
		budgets := map[string]bool{}
		for _, o := range s.of("PodDisruptionBudget") {
			budgets[o.service()] = true
		}
		for name, n := range fewest {
			require.Equal(t, n > 1, budgets[name], "%s has %d pods", name, n)
		}
	})
}
