package check

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/config"
)

const dockerfile = "../docker/Dockerfile"

// shipped returns the last stage of the Dockerfile.
func shipped(t *testing.T) string {
	t.Helper()
	doc := source(t, dockerfile)
	_, stage, ok := strings.Cut(doc[strings.LastIndex(doc, "\nFROM "):], "\n")
	require.True(t, ok)
	return stage
}

func TestImage_HoldsNothingButWhatRuns(t *testing.T) {
	t.Parallel()
	stage := shipped(t)
	require.True(t, strings.HasPrefix(stage, "FROM scratch\n"), "no shell, no packages")
	require.Regexp(t, `(?m)^USER 65532:65532$`, stage)
	require.NotRegexp(t, `(?m)^(RUN|ADD) `, stage)
	// An image without a version is another one tomorrow. Without a registry only Docker finds it.
	require.Regexp(t, `(?m)^ARG GO_IMAGE=docker\.io/library/golang:[0-9]+\.[0-9]+\.[0-9]+$`, source(t, dockerfile))
	for _, from := range regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(source(t, dockerfile), -1) {
		require.Regexp(t, `^(scratch|--platform=\$BUILDPLATFORM \$\{GO_IMAGE\})( AS [a-z]+)?$`, from[1])
	}
}

// The environment overrides the --config file, so a setting in the image would override the
// chart's.
func TestImage_SetsNothingThatWouldBeatTheChart(t *testing.T) {
	t.Parallel()
	require.NotContains(t, shipped(t), "\nENV ")
	require.NotContains(t, shipped(t), config.EnvName(""))
}

// The image's default command exists.
func TestImage_RunsTheWholeHostByItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, runs the binary: run without -short")
	}
	m := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(shipped(t))
	require.NotNil(t, m)
	var args []string
	require.NoError(t, json.Unmarshal([]byte(m[1]), &args))
	for _, arg := range args[1:] {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			require.Contains(t, flagsOf(t, args[0]), name)
		}
	}
}

// build runs the Dockerfile's build command on the sources.
func build(t *testing.T, flags []string, dir string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "waybill")
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, flags...), "-o", out, "./cmd/waybill")...) //nolint:gosec // G204: the flags are the Dockerfile's
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	msg, err := cmd.CombinedOutput()
	require.NoError(t, err, string(msg))
	b, err := os.ReadFile(out) //nolint:gosec // G304: just built
	require.NoError(t, err)
	f, err := elf.Open(out)
	require.NoError(t, err)
	defer f.Close() //nolint:errcheck // only read
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "static: there is no loader in the image")
	return b
}

// read lists the files that a build reads below a folder.
func read(t *testing.T, dir string) []string {
	t.Helper()
	const each = `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", each, "./cmd/waybill")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.Output()
	require.NoError(t, err)
	files := []string{"go.mod", "go.sum", "proto/go.mod", "proto/go.sum", "protocol/go.mod", "protocol/go.sum"}
	for line := range strings.Lines(string(out)) {
		if name, ours := strings.CutPrefix(strings.TrimSpace(line), dir+"/"); ours {
			files = append(files, name)
		}
	}
	return files
}

// The same sources give the same binary in any folder.
func TestImage_IsBuiltTheSameEverywhere(t *testing.T) {
	if os.Getenv("BUILD_TWICE") == "" {
		t.Skip("SKIPPED, builds the image twice: run `make deploy-check ONLY=image`")
	}
	t.Parallel()
	m := regexp.MustCompile(`go build (.*) -ldflags "([^"]*)" -o`).FindStringSubmatch(source(t, dockerfile))
	require.NotNil(t, m)
	flags := append(strings.Fields(m[1]), "-ldflags", m[2])
	here, err := filepath.Abs("../..")
	require.NoError(t, err)
	elsewhere := t.TempDir()
	for _, name := range read(t, here) {
		b, err := os.ReadFile(filepath.Join(here, name))
		require.NoError(t, err)
		to := filepath.Join(elsewhere, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
		require.NoError(t, os.WriteFile(to, b, 0o600))
	}
	require.Equal(t, sha256.Sum256(build(t, flags, here)), sha256.Sum256(build(t, flags, elsewhere)))
}
