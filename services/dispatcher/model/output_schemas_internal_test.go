package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues_CompileASchemaOnce(t *testing.T) {
	t.Parallel()
	var m outputSchemas
	doc := json.RawMessage(`{"title":"order","type":"object","required":["a"]}`)
	first, err := m.compile(doc)
	require.NoError(t, err)
	require.Equal(t, "order", first.name)
	require.NotEmpty(t, first.schema.Validate([]byte(`{}`)))
	again, err := m.compile(append(json.RawMessage(nil), doc...))
	require.NoError(t, err)
	require.Same(t, first.schema, again.schema, "the key is the text")
	other, err := m.compile(json.RawMessage(`{"type":"object"}`))
	require.NoError(t, err)
	require.Empty(t, other.schema.Validate([]byte(`{}`)), "another schema has another entry")
}

func TestValues_TellWhatIsWrongEachTime(t *testing.T) {
	t.Parallel()
	var m outputSchemas
	for range 2 {
		_, err := m.compile(json.RawMessage(`{"type":"nonsense"}`))
		require.ErrorContains(t, err, "outputSchema")
	}
	require.Empty(t, m.entries, "invalid schemas are not cached")
}

func TestValues_DoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	var m outputSchemas
	text := strings.Repeat("x", 200<<10) // close to the largest cached size
	for i := range 50 {
		v, err := m.compile(fmt.Appendf(nil, `{"description":%q,"const":%d}`, text, i))
		require.NoError(t, err)
		require.Empty(t, v.schema.Validate(fmt.Append(nil, i)))
		require.LessOrEqual(t, m.bytes, maxCached)
		require.LessOrEqual(t, len(m.entries), maxCached/len(text))
		require.NotEmpty(t, m.entries)
	}
}

func TestValues_ServeManyAtOnce(t *testing.T) {
	t.Parallel()
	var (
		m  outputSchemas
		wg sync.WaitGroup
	)
	for i := range 32 {
		wg.Go(func() {
			v, err := m.compile(fmt.Appendf(nil, `{"const":%d}`, i%4))
			if err == nil && len(v.schema.Validate(fmt.Append(nil, i%4))) > 0 {
				err = fmt.Errorf("schema %d is another's", i%4)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, m.entries, 4)
}
