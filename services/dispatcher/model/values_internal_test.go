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
	var m values
	doc := json.RawMessage(`{"title":"order","type":"object","required":["a"]}`)
	first, err := m.of(doc)
	require.NoError(t, err)
	require.Equal(t, "order", first.name)
	require.NotEmpty(t, first.schema.Validate([]byte(`{}`)))
	again, err := m.of(append(json.RawMessage(nil), doc...))
	require.NoError(t, err)
	require.Same(t, first.schema, again.schema, "the text decides, not where it lies")
	other, err := m.of(json.RawMessage(`{"type":"object"}`))
	require.NoError(t, err)
	require.Empty(t, other.schema.Validate([]byte(`{}`)), "another schema is another")
}

func TestValues_TellWhatIsWrongEachTime(t *testing.T) {
	t.Parallel()
	var m values
	for range 2 {
		_, err := m.of(json.RawMessage(`{"type":"nonsense"}`))
		require.ErrorContains(t, err, "outputSchema")
	}
	require.Empty(t, m.known, "what does not compile takes no room")
}

func TestValues_DoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	var m values
	text := strings.Repeat("x", 200<<10) // about as long as is taken
	for i := range 50 {
		v, err := m.of(fmt.Appendf(nil, `{"description":%q,"const":%d}`, text, i))
		require.NoError(t, err)
		require.Empty(t, v.schema.Validate(fmt.Append(nil, i)))
		require.LessOrEqual(t, m.bytes, maxCached)
		require.LessOrEqual(t, len(m.known), maxCached/len(text))
		require.NotEmpty(t, m.known)
	}
}

func TestValues_ServeManyAtOnce(t *testing.T) {
	t.Parallel()
	var (
		m  values
		wg sync.WaitGroup
	)
	for i := range 32 {
		wg.Go(func() {
			v, err := m.of(fmt.Appendf(nil, `{"const":%d}`, i%4))
			if err == nil && len(v.schema.Validate(fmt.Append(nil, i%4))) > 0 {
				err = fmt.Errorf("schema %d is another's", i%4)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, m.known, 4)
}
