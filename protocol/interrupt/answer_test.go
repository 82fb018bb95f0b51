package interrupt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §6.1, clarification; §12 no. 9.
func TestDecide_ClarificationTakesBothForms(t *testing.T) {
	t.Parallel()
	const config = `{"questions":[{"id":"color","question":"Which?"},{"id":"a/b","question":"How many?","schema":{"type":"integer","minimum":1}}]}`
	for name, tc := range map[string]struct {
		value, resume string
		status        int
		paths         []string
	}{
		"an object":               {`{"answers":{"color":"red","a/b":2}}`, `{"answers":{"a/b":2,"color":"red"}}`, 0, nil},
		"a list":                  {`{"answers":[{"id":"a/b","answer":2},{"id":"color","answer":{"x":[1e2]}}]}`, `{"answers":{"a/b":2,"color":{"x":[1e2]}}}`, 0, nil},
		"and what else was sent":  {`{"note":"<n>","answers":{"color":false,"a/b":2}}`, `{"answers":{"a/b":2,"color":false},"note":"<n>"}`, 0, nil},
		"one is missing":          {`{"answers":{"color":"red"}}`, "", 422, []string{"/resumeValue/answers/a~1b"}},
		"all are missing":         {`{"answers":{}}`, "", 422, []string{"/resumeValue/answers/color", "/resumeValue/answers/a~1b"}},
		"an empty list":           {`{"answers":[]}`, "", 422, []string{"/resumeValue/answers/color", "/resumeValue/answers/a~1b"}},
		"null is no answer":       {`{"answers":{"color":null,"a/b":null}}`, "", 422, []string{"/resumeValue/answers/color", "/resumeValue/answers/a~1b"}},
		"one does not fit":        {`{"answers":{"color":"red","a/b":0}}`, "", 422, []string{"/resumeValue/answers/a~1b"}},
		"one is of another type":  {`{"answers":[{"id":"color","answer":1},{"id":"a/b","answer":"2"}]}`, "", 422, []string{"/resumeValue/answers/a~1b"}},
		"an unknown question":     {`{"answers":{"color":"red","a/b":2,"colour":"red"}}`, "", 422, []string{"/resumeValue/answers/colour"}},
		"no answers":              {`{"color":"red"}`, "", 400, []string{"/resumeValue/answers"}},
		"answers of another type": {`{"answers":"red"}`, "", 400, []string{"/resumeValue/answers"}},
		"null":                    {`{"answers":null}`, "", 400, []string{"/resumeValue/answers"}},
		"no object":               {`["red",2]`, "", 400, []string{"/resumeValue/answers"}},
		"a list of texts":         {`{"answers":["red",2]}`, "", 400, []string{"/resumeValue/answers"}},
		"an item without id":      {`{"answers":[{"answer":1},{"id":"color"}]}`, "", 400, []string{"/resumeValue/answers/0", "/resumeValue/answers/1"}},
		"an item twice":           {`{"answers":[{"id":"color","answer":1},{"id":"color","answer":2}]}`, "", 400, []string{"/resumeValue/answers/1/id"}},
	} {
		d, err := interrupt.Decide(open(t, interrupt.TypeClarificationGate, config), by(interrupt.Responder{Principal: "k", User: "ada"}, tc.value))
		if tc.status != 0 {
			code, status, paths := refused(t, err)
			require.Equal(t, fault.ValidationError, code, name)
			require.Equal(t, tc.status, status, name)
			require.Equal(t, tc.paths, paths, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, interrupt.Advanced, d.Outcome, name)
		require.Equal(t, tc.resume, string(d.Resume), name)
		require.Equal(t, "ada", d.DecidedBy)
	}
}

func TestDecide_ClarificationAcceptsNullIfTheSchemaDoes(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?","schema":{"type":["string","null"]}}],"resumeSchema":{"properties":{"answers":{"type":"object"}}}}`)
	require.JSONEq(t, `{"answers":{"q":null}}`, string(decide(t, p, by(key, `{"answers":[{"id":"q","answer":null}]}`)).Resume), "the author's schema validates the object form")
}

// OpenWOP host contract §6.1, external-event.
func TestDecide_ExternalEventsMatchASubset(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"paid","correlation":{"orderId":"order-1","deep":{"list":[1,{"a":null}]},"n":1.0}}}`)
	for name, tc := range map[string]struct {
		value string
		code  fault.Code
	}{
		"all of it":               {`{"orderId":"order-1","deep":{"list":[1,{"a":null}]},"n":1.0}`, ""},
		"and more":                {`{"more":true,"n":1,"deep":{"list":[1.0,{"a":null}]},"orderId":"order-1"}`, ""},
		"a value another":         {`{"orderId":"order-2","deep":{"list":[1,{"a":null}]},"n":1}`, fault.CorrelationMismatch},
		"a value of another type": {`{"orderId":"order-1","deep":{"list":[1,{"a":null}]},"n":"1"}`, fault.CorrelationMismatch},
		"a member missing":        {`{"orderId":"order-1","n":1}`, fault.CorrelationMismatch},
		"more, further down":      {`{"orderId":"order-1","deep":{"list":[1,{"a":null}],"b":1},"n":1}`, fault.CorrelationMismatch},
		"another order":           {`{"orderId":"order-1","deep":{"list":[{"a":null},1]},"n":1}`, fault.CorrelationMismatch},
		"a name in another case":  {`{"OrderId":"order-1","deep":{"list":[1,{"a":null}]},"n":1}`, fault.CorrelationMismatch},
		"nothing":                 {`{}`, fault.CorrelationMismatch},
		"no object":               {`"order-1"`, fault.ValidationError},
		"null":                    {`null`, fault.ValidationError},
	} {
		d, err := interrupt.Decide(p, by(key, tc.value))
		require.Equal(t, tc.code, fault.CodeOf(err), name)
		if tc.code == "" {
			require.Equal(t, interrupt.Advanced, d.Outcome, name)
			require.JSONEq(t, tc.value, string(d.Resume), name)
			require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventNodeResumed}, types(d.Events))
		}
	}
}

// OpenWOP host contract §6.1: the answer must not reveal the expected values.
func TestDecide_ExternalEventsRevealNothing(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"paid","correlation":{"orderId":"order-1","pin":4711}}}`)
	var said []string
	for _, value := range []string{`{}`, `{"orderId":"order-1"}`, `{"pin":4711}`, `{"orderId":"order-1","pin":1}`, `{"orderId":"x","pin":4711}`} {
		_, err := interrupt.Decide(p, by(key, value))
		e, ok := fault.As(err)
		require.True(t, ok)
		require.Equal(t, 422, e.Row().HTTP)
		said = append(said, string(e.Internal()))
	}
	for _, s := range said {
		require.Equal(t, said[0], s, "the error does not reveal which member matched")
		require.NotContains(t, s, "order-1")
		require.NotContains(t, s, "4711")
	}
}

// OpenWOP host contract §6.1: redelivery is a no-op.
func TestRedelivered_IsTheSameEventAgain(t *testing.T) {
	t.Parallel()
	const first = `{"correlationId":"c","eventId":"e","n":1}`
	for value, same := range map[string]bool{
		first: true, `{"eventId":"e","correlationId":"c"}`: true, `{"correlationId":"c","eventId":"f"}`: false, `{"correlationId":"d","eventId":"e"}`: false,
		`{"correlationId":"c"}`: false, `{}`: false, `null`: false, `"e"`: false, ``: false, `{"correlationId":1,"eventId":2}`: false,
	} {
		require.Equal(t, same, interrupt.Redelivered(json.RawMessage(first), json.RawMessage(value)), value)
	}
	for _, nothing := range []string{`{}`, `{"correlationId":"","eventId":""}`, `{"correlationId":null,"eventId":null}`} {
		require.False(t, interrupt.Redelivered(json.RawMessage(nothing), json.RawMessage(nothing)), "events without ids are never redeliveries")
	}
}

// OpenWOP host contract §6.1, custom: any JSON.
func TestDecide_CustomFollowsItsSchema(t *testing.T) {
	t.Parallel()
	free := open(t, interrupt.TypeInterrupt, `{"kind":"custom","data":{"customKind":"sign"}}`)
	for value, outputs := range map[string]string{
		` {"a" : 1, "output":2} `: `{"a":1,"output":2}`, `null`: `{"output":null}`, `[1]`: `{"output":[1]}`, `"x"`: `{"output":"x"}`, `12345678901234567890`: `{"output":12345678901234567890}`,
	} {
		d := decide(t, free, by(key, value))
		b, err := json.Marshal(d.Outputs())
		require.NoError(t, err)
		require.JSONEq(t, outputs, string(b))
		require.NotContains(t, string(d.Resume), " ")
	}
	bound := open(t, interrupt.TypeInterrupt, `{"kind":"custom","data":{"customKind":"sign"},"resumeSchema":{"type":"object","required":["name"]}}`)
	decide(t, bound, by(key, `{"name":1}`))
	_, err := interrupt.Decide(bound, by(key, `null`))
	code, status, paths := refused(t, err)
	require.Equal(t, fault.ValidationError, code)
	require.Equal(t, 400, status)
	require.Equal(t, []string{"/resumeValue"}, paths)
}

// One append records an answer up to four times. An answer far above the limit is rejected with its
// size, and one nested deeper than a node's outputs may be is rejected with its path.
func TestDecide_RejectsOversizedAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeApprovalGate, `{"title":"t","actions":["accept"]}`)
	answer := func(comment string) error {
		_, err := interrupt.Decide(p, by(key, `{"action":"accept","more":`+comment+`}`))
		return err
	}
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	require.NoError(t, answer(text(1<<20)))
	require.NoError(t, answer(nested(99)))
	err := answer(text(3 << 19))
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	require.Contains(t, err.Error(), "/resumeValue")
	code, _, paths := refused(t, answer(nested(100)))
	require.Equal(t, fault.ValidationError, code)
	require.Len(t, paths, 1)
	require.True(t, strings.HasPrefix(paths[0], "/resumeValue/more/0/0/"), paths)
}
