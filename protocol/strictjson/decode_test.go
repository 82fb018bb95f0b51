package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// upper is a type with its own rule and error text.
type upper string

func (u *upper) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New("secret words: " + string(b))
	}
	if s != strings.ToUpper(s) {
		return &strictjson.Error{Rule: strictjson.RuleType, Reason: "want capitals"}
	}
	*u = upper(s)
	return nil
}

type page struct {
	Limit int `json:"limit"`
}

type request struct {
	page
	ID       string            `json:"id"`
	Count    int32             `json:"count"`
	Size     uint8             `json:"size"`
	Ratio    float32           `json:"ratio"`
	Exact    json.Number       `json:"exact"`
	On       bool              `json:"on"`
	Maybe    *bool             `json:"maybe"`
	Nodes    []node            `json:"nodes"`
	Labels   map[string]string `json:"labels"`
	Payload  json.RawMessage   `json:"payload"`
	Any      any               `json:"any"`
	Code     upper             `json:"code"`
	At       time.Time         `json:"at"`
	Blob     []byte            `json:"blob"`
	Quoted   int               `json:"quoted,string"`
	Untagged string
	Hidden   string `json:"-"`
	private  string
}

type node struct {
	ID   string `json:"id"`
	Next *node  `json:"next"`
}

func TestDecode_FillsTheTarget(t *testing.T) {
	t.Parallel()
	doc := `{"limit":5,"id":"a","count":-3,"size":255,"ratio":0.5,"exact":1.0,"on":true,"maybe":null,
		"nodes":[{"id":"n1","next":{"id":"n2","next":null}},{"id":"n3"}],"labels":{"x":"y"},
		"payload":{"n":12345678901234567890},"any":{"n":12345678901234567890},"code":"OK",
		"at":"2026-05-01T12:00:00Z","blob":"aGk=","quoted":"7","Untagged":"u"}`
	var r request
	require.NoError(t, strictjson.Decode([]byte(doc), strictjson.Default, &r))
	require.Equal(t, 5, r.Limit)
	require.Equal(t, int32(-3), r.Count)
	require.Equal(t, json.Number("1.0"), r.Exact)
	require.Equal(t, "n2", r.Nodes[0].Next.ID)
	require.JSONEq(t, `{"n":12345678901234567890}`, string(r.Payload))
	require.Equal(t, json.Number("12345678901234567890"), r.Any.(map[string]any)["n"])
	require.Equal(t, []byte("hi"), r.Blob)
	require.Equal(t, 7, r.Quoted)
	require.Empty(t, r.private)
}

func TestDecode_ReportsThePathOfTheMember(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ doc, rule, path, reason string }{
		"root is no object": {
			doc:    `[]`,
			rule:   strictjson.RuleType,
			path:   "",
			reason: "want an object, got an array",
		},
		"unknown at root": {
			doc:    `{"id":"a","nope":1}`,
			rule:   strictjson.RuleUnknown,
			path:   "/nope",
			reason: "allowed here: Untagged, any, at",
		},
		"unknown deep inside": {
			doc:    `{"nodes":[{"id":"a"},{"next":{"nope":1}}]}`,
			rule:   strictjson.RuleUnknown,
			path:   "/nodes/1/next/nope",
			reason: "allowed here: id, next",
		},
		"other case": {
			doc:    `{"ID":"a"}`,
			rule:   strictjson.RuleUnknown,
			path:   "/ID",
			reason: "allowed here",
		},
		"both cases": {
			doc:    `{"id":"a","Id":"b"}`,
			rule:   strictjson.RuleUnknown,
			path:   "/Id",
			reason: "allowed here",
		},
		"hidden field": {
			doc:    `{"Hidden":"a"}`,
			rule:   strictjson.RuleUnknown,
			path:   "/Hidden",
			reason: "",
		},
		"unexported field": {
			doc:    `{"private":"a"}`,
			rule:   strictjson.RuleUnknown,
			path:   "/private",
			reason: "",
		},
		"number for string": {
			doc:    `{"id":1}`,
			rule:   strictjson.RuleType,
			path:   "/id",
			reason: "want a string, got a number",
		},
		"null for string": {
			doc:    `{"id":null}`,
			rule:   strictjson.RuleType,
			path:   "/id",
			reason: "want a string, got null",
		},
		"null for slice": {
			doc:    `{"nodes":null}`,
			rule:   strictjson.RuleType,
			path:   "/nodes",
			reason: "want an array, got null",
		},
		"null for struct": {
			doc:    `{"nodes":[null]}`,
			rule:   strictjson.RuleType,
			path:   "/nodes/0",
			reason: "want an object, got null",
		},
		"object for array": {
			doc:    `{"nodes":{}}`,
			rule:   strictjson.RuleType,
			path:   "/nodes",
			reason: "want an array, got an object",
		},
		"wrong map value": {
			doc:    `{"labels":{"a":"b","c/d":true}}`,
			rule:   strictjson.RuleType,
			path:   "/labels/c~1d",
			reason: "want a string, got a boolean",
		},
		"string for bool": {
			doc:    `{"on":"true"}`,
			rule:   strictjson.RuleType,
			path:   "/on",
			reason: "want true or false, got a string",
		},
		"string for pointer": {
			doc:    `{"maybe":"x"}`,
			rule:   strictjson.RuleType,
			path:   "/maybe",
			reason: "want true or false",
		},
		"fraction for integer": {
			doc:    `{"count":1.0}`,
			rule:   strictjson.RuleType,
			path:   "/count",
			reason: "integer, without fraction",
		},
		"too large for int32": {
			doc:    `{"count":2147483648}`,
			rule:   strictjson.RuleType,
			path:   "/count",
			reason: "int32",
		},
		"negative for uint": {
			doc:    `{"size":-1}`,
			rule:   strictjson.RuleType,
			path:   "/size",
			reason: "uint8",
		},
		"too large for float32": {
			doc:    `{"ratio":1e99}`,
			rule:   strictjson.RuleType,
			path:   "/ratio",
			reason: "float32",
		},
		"string for number": {
			doc:    `{"exact":"1"}`,
			rule:   strictjson.RuleType,
			path:   "/exact",
			reason: "want a number, got a string",
		},
		"string for integer": {
			doc:    `{"count":"1"}`,
			rule:   strictjson.RuleType,
			path:   "/count",
			reason: "want a number, got a string",
		},
		"type with its own rule": {
			doc:    `{"code":"ok"}`,
			rule:   strictjson.RuleType,
			path:   "/code",
			reason: "want capitals",
		},
		"type that quotes": {
			doc:    `{"code":["hunter2"]}`,
			rule:   strictjson.RuleType,
			path:   "/code",
			reason: "not a valid upper",
		},
		"time": {
			doc:    `{"at":"hunter2"}`,
			rule:   strictjson.RuleType,
			path:   "/at",
			reason: "not a valid Time",
		},
		"base64": {
			doc:    `{"blob":"???"}`,
			rule:   strictjson.RuleType,
			path:   "/blob",
			reason: "not a valid",
		},
		"number for base64": {
			doc:    `{"blob":[1]}`,
			rule:   strictjson.RuleType,
			path:   "/blob",
			reason: "want a string of base64",
		},
		"promoted field": {
			doc:    `{"limit":"x"}`,
			rule:   strictjson.RuleType,
			path:   "/limit",
			reason: "want a number",
		},
		"checked before decoded": {
			doc:    `{"nope":1,"nope":2}`,
			rule:   strictjson.RuleDuplicate,
			path:   "/nope",
			reason: "keep one",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := asError(t, strictjson.Decode([]byte(tc.doc), strictjson.Default, &request{}))
			require.Equal(t, tc.rule, e.Rule, e.Error())
			require.Equal(t, tc.path, e.Path, e.Error())
			require.Contains(t, e.Reason, tc.reason)
			require.NotContains(t, e.Error(), "hunter2")
		})
	}
}

func TestDecode_PointsAtTheOffendingByte(t *testing.T) {
	t.Parallel()
	doc := `{"id":"a", "nope":1}`
	e := asError(t, strictjson.Decode([]byte(doc), strictjson.Default, &request{}))
	require.Equal(t, strings.Index(doc, `"nope"`), e.Offset)

	doc = `{"nodes":[{"id":7}]}`
	e = asError(t, strictjson.Decode([]byte(doc), strictjson.Default, &request{}))
	require.Equal(t, strings.Index(doc, `7`), e.Offset)
}

func TestDecode_ReportsWhenNoMemberIsAllowed(t *testing.T) {
	t.Parallel()
	e := asError(t, strictjson.Decode([]byte(`{"a":1}`), strictjson.Default, &struct{}{}))
	require.Contains(t, e.Reason, "no members are allowed")
}

func TestDecode_DoesNotChangeTheTargetOnError(t *testing.T) {
	t.Parallel()
	r := request{ID: "before"}
	require.Error(t, strictjson.Decode([]byte(`{"id":"after","count":"x"}`), strictjson.Default, &r))
	require.Equal(t, "before", r.ID)
}

func TestDecode_RejectsUnusableTargets(t *testing.T) {
	t.Parallel()
	require.Error(t, strictjson.Decode([]byte(`{}`), strictjson.Default, nil))
	require.Error(t, strictjson.Decode([]byte(`{}`), strictjson.Default, request{}))
	require.Error(t, strictjson.Decode([]byte(`{}`), strictjson.Default, (*request)(nil)))
}

func TestDecode_ListsOnlySomeOfManyMembers(t *testing.T) {
	t.Parallel()
	type many struct{ A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T, U int }
	e := asError(t, strictjson.Decode([]byte(`{"nope":1}`), strictjson.Default, &many{}))
	require.True(t, strings.HasSuffix(e.Reason, ", ..."), e.Reason)
}
