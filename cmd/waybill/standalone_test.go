package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
)

const sound = `{"type":"error","schemaVersion":1,"envelopeId":"e1","correlationId":"c1","payload":{"code":"x.y","message":"m"},` +
	`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`

func TestEnvelopeLint_SaysWhatWouldHappen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vendor.acme.note.schema.json"), []byte(`{"type":"object","required":["text"]}`), 0o600))
	note := `{"type":"vendor.acme.note","envelopeId":"e1","correlationId":"c1","payload":{},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`
	for name, tc := range map[string]struct {
		doc  string
		args []string
		want []string
		err  error
	}{
		"accepted":         {sound, nil, []string{"accepted: error, version 1"}, nil},
		"accepted as JSON": {sound, []string{"-o", "json"}, []string{`"status": "accepted"`}, nil},
		"a wrong payload":  {note, []string{"--kinds", dir}, []string{"invalid: envelope_invalid: ", "  /payload: required member missing: text (required)"}, errRefused},
		"an unknown kind":  {note, nil, []string{"gated: unknown_envelope_kind: ", "accepted here: media.image"}, errRefused},
		"a contract":       {note, []string{"--kinds", dir, "--accepts", "vendor.acme.other"}, []string{"invalid: envelope_invalid"}, errRefused},
		"below the version": {
			`{"type":"error","envelopeId":"e1","correlationId":"c1","payload":{"code":"x","message":"m"},"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
			nil,
			[]string{"accepted: error, version 0", "a strict host refuses it"},
			nil,
		},
		"below it, strictly": {
			`{"type":"error","envelopeId":"e1","correlationId":"c1","payload":{"code":"x","message":"m"},"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
			[]string{"--strict"},
			[]string{"invalid: unknown_schema_version"},
			errRefused,
		},
		"no envelope":      {`[]`, nil, []string{"invalid: invalid_envelope_shape"}, errRefused},
		"an unknown form":  {sound, []string{"-o", "xml"}, nil, errUsage},
		"an absent folder": {sound, []string{"--kinds", filepath.Join(dir, "ghost")}, nil, errUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, tc.doc, append([]string{"envelope", "lint", "-"}, tc.args...)...)
			require.Equal(t, exit.Status(tc.err), exit.Status(err), "%v", err)
			for _, want := range tc.want {
				require.Contains(t, out, want)
			}
		})
	}
}

func TestServe_GuardsWhatOtherMachinesReach(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*commonOptions)
		want   string // empty: fine
	}{
		"loopback":               {func(*commonOptions) {}, ""},
		"loopback of version 6":  {func(o *commonOptions) { o.grpcAddr = "[::1]:0" }, ""},
		"every address":          {func(o *commonOptions) { o.grpcAddr = ":9091" }, "give --token-file"},
		"a host name":            {func(o *commonOptions) { o.grpcAddr = "box:9091" }, "give --token-file"},
		"a token without TLS":    {func(o *commonOptions) { o.grpcAddr, o.tokenFile = "0.0.0.0:1", "t" }, "in clear"},
		"a token and TLS":        {func(o *commonOptions) { o.grpcAddr, o.tokenFile, o.tlsCert, o.tlsKey = "0.0.0.0:1", "t", "c", "k" }, ""},
		"insecure on purpose":    {func(o *commonOptions) { o.grpcAddr, o.insecure = "0.0.0.0:1", true }, ""},
		"half of a certificate":  {func(o *commonOptions) { o.tlsCert = "c" }, "belong together"},
		"an address of no shape": {func(o *commonOptions) { o.grpcAddr = "9091" }, "want host:port"},
	} {
		o := commonOptions{grpcAddr: "127.0.0.1:0"}
		tc.change(&o)
		err := o.validate()
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
	}
}

func TestReadSecrets_NamesLinesAndNeverValues(t *testing.T) {
	t.Parallel()
	file := func(mode os.FileMode, text string) string {
		path := filepath.Join(t.TempDir(), "secrets.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	got, err := readSecrets(file(0o600, "db: correct-horse\nmail: battery-staple\n"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "correct-horse", got[0].Value.Reveal())
	_, err = readSecrets(file(0o600, "db: correct-horse\n\nmail: horse\n"))
	require.ErrorContains(t, err, "secrets.yaml:3: ")
	for name, path := range map[string]string{
		"in its id":   file(0o600, "id-correct-horse-9: correct-horse-9\n"),
		"open to all": file(0o604, "db: correct-horse\n"),
		"no YAML":     file(0o600, "db: [correct-horse\n"),
		"no map":      file(0o600, "- correct-horse\n"),
		"too short":   file(0o600, "db: horse\n"),
		"a bad id":    file(0o600, "\"a]b\": correct-horse\n"),
		"not there":   "no-such-file",
	} {
		_, err := readSecrets(path)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "horse", name)
	}
}

func TestReadToken_WantsOneThatNobodyGuesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	for text, ok := range map[string]bool{"0123456789abcdef\n": true, "short": false, "0123456789 abcdef": false, "": false} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readToken(path)
		require.Equal(t, ok, err == nil, text)
	}
}

func TestServe_DocumentsEveryFlag(t *testing.T) {
	t.Parallel()
	var doc []byte
	for _, page := range []string{"acceptor-api.md", "reference/configuration.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		require.NoError(t, err)
		doc = append(doc, text...)
	}
	missing := []string{}
	for _, c := range append(serveCommand().Commands(), envelopeAcceptCommand()) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			told := c.Name() == "accept" && f.Name != "ca" && f.Name != "plaintext" // by its help
			if !told && !strings.Contains(string(doc), "`--"+f.Name+"`") {
				missing = append(missing, c.Name()+" --"+f.Name)
			}
		})
	}
	require.Empty(t, missing)
}
