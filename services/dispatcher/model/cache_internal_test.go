package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
)

// A compilation does not hold the cache's lock.
func TestCache_CompilesBesideItsLock(t *testing.T) {
	t.Parallel()
	var m cache[string, int]
	slow, err := m.getOrCompile("slow", func() (int, int, error) {
		require.True(t, m.mu.TryLock(), "the lock is held during a compilation")
		m.mu.Unlock()
		quick, err := m.getOrCompile("quick", func() (int, int, error) { return 1, 1, nil })
		return quick + 1, 1, err
	})
	require.NoError(t, err)
	require.Equal(t, 2, slow)
	require.Equal(t, map[string]int{"slow": 2, "quick": 1}, m.entries)
	require.Equal(t, 2, m.bytes)
}

func TestCache_KeepsWhatWasThereFirst(t *testing.T) {
	t.Parallel()
	var m cache[string, int]
	got, err := m.getOrCompile("a", func() (int, int, error) {
		_, err := m.getOrCompile("a", func() (int, int, error) { return 1, 1, nil })
		return 2, 1, err
	})
	require.NoError(t, err)
	require.Equal(t, 1, got)
	require.Equal(t, 1, m.bytes, "each entry counts once")
}

func TestCache_RemembersNoFailureAndNothingTooLarge(t *testing.T) {
	t.Parallel()
	var m cache[string, int]
	broken := errors.New("broken")
	_, err := m.getOrCompile("a", func() (int, int, error) { return 0, 1, broken })
	require.ErrorIs(t, err, broken)
	require.Empty(t, m.entries)
	_, err = m.getOrCompile("small", func() (int, int, error) { return 1, 1, nil })
	require.NoError(t, err)
	got, err := m.getOrCompile("large", func() (int, int, error) { return 7, maxCached + 1, nil })
	require.NoError(t, err)
	require.Equal(t, 7, got)
	require.Equal(t, map[string]int{"small": 1}, m.entries, "an oversized value evicts nothing")
}

func TestReasonings_AreOfTheSchemasOwnMembers(t *testing.T) {
	t.Parallel()
	var m reasonings
	for schema, want := range map[string]bool{
		`{"properties":{"reasoning":{"type":"string"}}}`: true, `{"properties":{"reasoning":null}}`: true,
		`{"properties":{"a":{"properties":{"reasoning":{}}}}}`: false, `{"title":"reasoning"}`: false, `{"properties":["reasoning"]}`: false, `{"reasoning"`: false, `true`: false,
	} {
		for range 2 { // the second time from the cache
			require.Equal(t, want, m.hasReasoning(json.RawMessage(schema)), schema)
		}
	}
	require.Len(t, m.entries, 6)
}

// Tenants fill this cache when they register workflows.
func TestProjections_DoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	var m projections
	text := strings.Repeat("x", 50<<10)
	for i := range 120 {
		source := fmt.Appendf(nil, `{"type":"object","properties":{"a":{"type":"string","description":%q}},"title":"%d"}`, text, i)
		p, problems := m.compile(source, projection.OpenAI)
		require.Empty(t, problems)
		require.NotNil(t, p)
		require.NotEmpty(t, m.entries)
		require.LessOrEqual(t, m.bytes, maxCached)
		require.LessOrEqual(t, len(m.entries), maxCached/len(text))
	}
}

func TestProjections_RememberByTextAndVendor(t *testing.T) {
	t.Parallel()
	var m projections
	doc := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`)
	first, _ := m.compile(doc, projection.OpenAI)
	again, _ := m.compile(append(json.RawMessage(nil), doc...), projection.OpenAI)
	require.Same(t, first, again)
	other, _ := m.compile(doc, projection.Gemini)
	require.NotSame(t, first, other)
	require.Len(t, m.entries, 2)

	bad := json.RawMessage(`{"type":"object","not":{}}`)
	none, problems := m.compile(bad, projection.OpenAI)
	require.Nil(t, none)
	require.NotEmpty(t, problems)
	_, same := m.compile(bad, projection.OpenAI)
	require.Equal(t, problems, same)
	require.Len(t, m.entries, 3, "problems are cached")
}

func TestConfigs_RememberByText(t *testing.T) {
	t.Parallel()
	var m configs
	doc := json.RawMessage(`{"prompt":"Say a word.","stop":["."]}`)
	first, bad := m.parse(doc)
	require.Nil(t, bad)
	first.Prompt = "what a template made of it"
	again, bad := m.parse(append(json.RawMessage(nil), doc...))
	require.Nil(t, bad)
	require.Equal(t, "Say a word.", again.Prompt)
	require.Same(t, &first.Stop[0], &again.Stop[0])

	for _, wrong := range []string{`{"prompt":1}`, `[]`, `{"prompt":"a","prompt":"b"}`} {
		_, bad := m.parse(json.RawMessage(wrong))
		require.NotNil(t, bad, wrong)
	}
	none, bad := m.parse(nil)
	require.Nil(t, bad)
	require.Equal(t, config{}, none)
	require.Len(t, m.entries, 1, "invalid configs are not cached")
}
