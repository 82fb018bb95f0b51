package settings_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
)

type entry struct {
	Limit *struct {
		N int `json:"n"`
	} `json:"limit"`
	Name string `json:"name"`
	List []int  `json:"list"`
}

func TestFile_ReportsEveryErrorWithItsPath(t *testing.T) {
	t.Parallel()
	var v map[string]entry
	f := settings.Read([]byte(`{"a":{"limit":{"n":"many","m":1},"tile":{"deep":[1]},"list":[1,"x",
2.5]},"b/c":{"name":7,"limit":{"n":5}}}`), &v)
	f.Range(settings.Path("", "b/c")+"/limit/n", int64(v["b/c"].Limit.N), 1, 4)
	f.Range("/a/limit/n", int64(v["a"].Limit.N), 1, 4) // reported already
	f.Wrong("/b~1c/name/part", "not this either")
	require.EqualError(t, f.Err(), `line 1, at "/a/limit/n": want a number, got a string
line 1, at "/a/limit/m": unknown member; allowed here: n
line 1, at "/a/tile": unknown member; allowed here: limit, list, name
line 1, at "/a/list/1": want a number, got a string
line 2, at "/a/list/2": want an integer, without fraction or exponent, of int range
line 2, at "/b~1c/name": want a string, got a number
line 2, at "/b~1c/limit/n": 5: want 1 to 4`)
	require.NoError(t, settings.Read([]byte(`{}`), &v).Err())
}

func TestFile_ThatIsNoJSONHasOneError(t *testing.T) {
	t.Parallel()
	var v map[string]entry
	f := settings.Read([]byte(`{"a":`), &v)
	f.Wrong("", "missing")
	require.ErrorContains(t, f.Err(), "the document ends too early")
	require.NotContains(t, f.Err().Error(), "\n")
}
