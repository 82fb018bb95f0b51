package packs

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

const clerk = `{"templateId":"clerk","version":"1.0.0","kind":"system","text":"You are a clerk."}`

func TestPromptOptions_ReadTheFolderAndThePacks(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"clerk.json":     clerk,
		"README.md":      "of people",
		"old/clerk.json": clerk,
		".draft.json":    "{",
	})
	o := PromptOptions{Dir: dir, Observability: "full"}
	desk := &pack.Pack{
		Name:    "vendor.acme.desk",
		Folder:  "desk",
		Prompts: []pack.PromptFile{{File: "ask.json", Document: []byte(strings.Replace(clerk, "clerk", "ask", 1))}},
	}
	var logged bytes.Buffer
	cfg, err := o.Config([]*pack.Pack{desk}, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Empty(t, logged.String())
	require.Equal(t, prompt.Full, cfg.Observability)
	require.Equal(t, map[string]string{CanarySecret: "canary-1"}, TestSecrets("canary-1"))
	for id, library := range map[string]string{"clerk": prompt.HostLibrary, "ask": "vendor.acme.desk"} {
		found, ferr := cfg.Library.Find(prompt.Ref{ID: id})
		require.Nil(t, ferr)
		require.Equal(t, library, found.Library)
	}

	none, err := (&PromptOptions{Observability: "hashed"}).Config(nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, none.Library.Empty())
	require.Empty(t, TestSecrets(""))
}

func TestPromptOptions_ReportAllErrors(t *testing.T) {
	t.Parallel()
	outside := clitest.Folder(t, map[string]string{"clerk.json": clerk})
	dir := clitest.Folder(t, map[string]string{
		"a.json": clerk,
		"b.json": clerk,
		"c.json": `{"templateId":"c","version":"1","kind":"user","text":"x"}`,
		"d.json": `{`,
	})
	require.NoError(t, os.Symlink(filepath.Join(outside, "clerk.json"), filepath.Join(dir, "e.json")))
	theirs := &pack.Pack{
		Name:    "vendor.acme.desk",
		Folder:  "desk",
		Prompts: []pack.PromptFile{{File: "x.json", Document: []byte(`{}`)}},
	}
	o := PromptOptions{Dir: dir, Observability: "hashed"}
	_, err := o.Config([]*pack.Pack{theirs}, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, exit.ErrUsage)
	for _, says := range []string{
		`c.json at "/version"`, `d.json at ""`, `e.json at "": cannot be read`, "version 1.0.0 is there twice",
		"pack vendor.acme.desk (folder desk): x.json at",
	} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), outside)
	_, err = (&PromptOptions{Dir: filepath.Join(dir, "gone")}).Config(nil, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "give an existing directory")
	require.Len(t, (&PromptOptions{Observability: "loud"}).Validate(), 1)
}

func TestPromptOptions_LogLikelyMistakes(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"w.json": `{"templateId":"w","version":"1.0.0","kind":"user","text":"{{topic}}"}`})
	var logged bytes.Buffer
	_, err := (&PromptOptions{Dir: dir, Observability: "hashed"}).Config(nil, slog.New(slog.NewTextHandler(&logged, nil)))
	require.NoError(t, err)
	require.Contains(t, logged.String(), "prompt:w@1.0.0")
	require.Contains(t, logged.String(), "optional input")
}

func TestCanaryValue_IsTheSuitesOrItsOwn(t *testing.T) {
	t.Setenv("OPENWOP_CANARY_SECRET_VALUE", "suite-canary")
	require.Equal(t, "suite-canary", CanaryValue())
	t.Setenv("OPENWOP_CANARY_SECRET_VALUE", "short")
	first := CanaryValue()
	require.NotEqual(t, "short", first, "the redactor would not look for it")
	require.NotEqual(t, first, CanaryValue())
}
