package check

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
	_ = os.RemoveAll(tools) // a temporary directory
}

const (
	chart     = "../helm/waybill"
	manifests = "../manifests"
	namespace = "waybill"
)

// services are the chart's services, by their names in `waybill serve`.
var services = []string{"gateway", "acceptor", "dispatcher", "eventlog", "redactor"}

// object has the fields that the checks read.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Data  map[string]string `yaml:"data"`
	Token *bool             `yaml:"automountServiceAccountToken"` // of a ServiceAccount
	Spec  yaml.Node         `yaml:"spec"`
}

// name is the object's name in messages.
func (o *object) name() string { return o.Kind + " " + o.Metadata.Name }

// service is the object's service; empty for shared objects.
func (o *object) service() string { return o.Metadata.Labels["app.kubernetes.io/component"] }

// set is what one set of values renders to.
type set []*object

func (s set) of(kind string) []*object {
	var out []*object
	for _, o := range s {
		if o.Kind == kind {
			out = append(out, o)
		}
	}
	return out
}

// spec reads the spec of an object.
func spec[T any](t *testing.T, o *object) T {
	t.Helper()
	var v T
	require.NoError(t, o.Spec.Decode(&v), o.name())
	return v
}

func parse(t *testing.T, doc []byte) set {
	t.Helper()
	var all set
	for d := yaml.NewDecoder(bytes.NewReader(doc)); ; {
		var o *object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if o != nil {
			all = append(all, o)
		}
	}
}

// helm runs the pinned helm and returns both outputs.
func helm(t *testing.T, args ...string) (out, messages string, ok bool) {
	t.Helper()
	bin := os.Getenv("HELM")
	if bin == "" {
		t.Skip("SKIPPED, HELM is not set to a helm binary: run `make deploy-check`")
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		require.NoError(t, err)
	}
	return stdout.String(), stderr.String(), err == nil
}

// template renders the chart.
func template(t *testing.T, args ...string) (out, messages string, ok bool) {
	t.Helper()
	return helm(t, append([]string{"template", "waybill", chart, "--namespace", namespace, "--kube-version", "1.36.0"}, args...)...)
}

// rendered caches the rendered sets by file; the checks do not change them.
var rendered sync.Map

func render(t *testing.T, file string) set {
	t.Helper()
	if s, ok := rendered.Load(file); ok {
		return s.(set)
	}
	out, messages, ok := template(t, "-f", file)
	require.True(t, ok, messages)
	s := parse(t, []byte(out))
	rendered.Store(file, s)
	return s
}

// committed are the plain manifests.
func committed(t *testing.T) set {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all set
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" { // not an object of a cluster
			continue
		}
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, parse(t, doc)...)
	}
	return all
}

// valueSets lists the tested value files: tests and examples.
func valueSets(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"ci", "sizes"} {
		files, err := filepath.Glob(filepath.Join(chart, dir, "*-values.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		all = append(all, files...)
	}
	return all
}

// eachSet runs a check on the manifests and, with HELM, on each set of values.
func eachSet(t *testing.T, check func(*testing.T, set)) {
	t.Helper()
	t.Run("manifests", func(t *testing.T) { check(t, committed(t)) })
	files := valueSets(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), "-values.yaml"), func(t *testing.T) {
			check(t, render(t, file))
		})
	}
}
