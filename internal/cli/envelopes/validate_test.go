package envelopes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
)

func TestEnvelopeValidate_LoadsTheKindsOfPacks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"notes/pack.json":         clitest.NotePack,
		"notes/waybill.json":      clitest.NoteKinds,
		"notes/schemas/note.json": `{"type":"object","required":["text"]}`,
	})
	for payload, ok := range map[string]bool{`{"text":"x"}`: true, `{}`: false} {
		out, err := command(t, envelopeOf(t, "vendor.acme.note", 2, payload), "envelope", "lint", "-", "--packs", dir)
		require.Equal(t, ok, err == nil, "%s %v", out, err)
	}
}

func envelopeOf(t *testing.T, kind string, version int, payload string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"type": kind, "schemaVersion": version, "envelopeId": "e", "correlationId": "c", "payload": json.RawMessage(payload),
		"meta": map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	})
	require.NoError(t, err)
	return string(b)
}

const sound = `{"type":"error","schemaVersion":1,"envelopeId":"e1","correlationId":"c1","payload":{"code":"x.y","message":"m"},` +
	`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`

func TestEnvelopeValidate_PrintsTheOutcome(t *testing.T) {
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
		"a wrong payload": {
			note,
			[]string{"--kinds", dir},
			[]string{"invalid: envelope_invalid: ", "  /payload: required member missing: text (required)"},
			errRefused,
		},
		"an unknown kind": {note, nil, []string{"gated: unknown_envelope_kind: ", "accepted here: media.image"}, errRefused},
		"a contract": {
			note,
			[]string{"--kinds", dir, "--accepts", "vendor.acme.other"},
			[]string{"invalid: envelope_invalid"},
			errRefused,
		},
		"below the version": {
			`{"type":"error","envelopeId":"e1","correlationId":"c1","payload":{"code":"x","message":"m"},"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
			nil,
			[]string{"accepted: error, version 0", "a strict host rejects it"},
			nil,
		},
		"below it, strictly": {
			`{"type":"error","envelopeId":"e1","correlationId":"c1","payload":{"code":"x","message":"m"},"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
			[]string{"--strict"},
			[]string{"invalid: unknown_schema_version"},
			errRefused,
		},
		"no envelope":      {`[]`, nil, []string{"invalid: invalid_envelope_shape"}, errRefused},
		"an unknown form":  {sound, []string{"-o", "xml"}, nil, exit.ErrUsage},
		"an absent folder": {sound, []string{"--kinds", filepath.Join(dir, "ghost")}, nil, exit.ErrUsage},
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
