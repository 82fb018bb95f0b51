// Package show formats events, statuses, durations and costs of runs for people.
package show

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/internal/cli/term"
	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Detail summarizes an event in one line without control characters.
func Detail(e wire.Event) string {
	p := read(e.Payload)
	text := ""
	if describe, ok := details[e.Type]; ok {
		text = describe(p)
	} else if len(p) > 0 {
		text = compact(e.Payload)
	}
	text = term.Clean(strings.Join(strings.Fields(text), " "))
	if e.ContentTrust == wire.Untrusted {
		text = strings.TrimSpace(text + " (untrusted)")
	}
	return text
}

// payload is an object of an event, with undecoded numbers.
type payload map[string]any

func read(doc []byte) payload {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var p payload
	if d.Decode(&p) != nil {
		return nil
	}
	return p
}

// s returns a member as text; empty if it is absent.
func (p payload) s(name string) string {
	switch v := p[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return compact(b)
	}
}

func (p payload) n(name string) int {
	n, _ := strconv.Atoi(p.s(name))
	return n
}

func (p payload) in(name string) payload {
	v, _ := p[name].(map[string]any)
	return v
}

func (p payload) list(name string) []any {
	v, _ := p[name].([]any)
	return v
}

// words joins the items of a list.
func (p payload) words(name string) string {
	var out []string
	for _, v := range p.list(name) {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}

// keys joins the member names of an object.
func (p payload) keys(name string) string {
	return strings.Join(slices.Sorted(maps.Keys(p.in(name))), ", ")
}

// failure formats an error as a line.
func (p payload) failure(name string) string {
	e := p.in(name)
	return join(": ", e.s("code"), e.s("message"))
}

func (p payload) model() string { return join("/", p.s("provider"), p.s("model")) }

// join joins the parts that are not empty.
func join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// after puts words before a text that is not empty.
func after(words, text string) string {
	if text == "" {
		return ""
	}
	return words + text
}

// counted puts a number between words; empty if the number is unknown.
func counted(before, n, unit string) string {
	if n == "" {
		return ""
	}
	return before + " " + n + " " + unit
}

// longest is the maximum length of a document within a line.
const longest = 160

func compact(doc []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return ""
	}
	return cut(b.String())
}

func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// details summarize the event types that Waybill records. Other events show their payload.
var details = map[wire.EventType]func(payload) string{
	wire.EventRunStarted: func(p payload) string {
		return join(", ", after("workflow ", p.s("workflowId")), after("inputs ", p.keys("inputs")))
	},
	wire.EventRunCompleted: func(p payload) string { return after("outputs ", p.keys("outputs")) },
	wire.EventRunFailed:    func(p payload) string { return p.failure("error") },
	wire.EventRunCancelled: func(p payload) string { return join(" ", p.s("reason"), after("by ", p.s("cancelledBy"))) },
	wire.EventRunPaused:    func(p payload) string { return join(", ", p.s("reason"), p.s("drainPolicy")) },
	"run.resumed":          func(p payload) string { return p.s("reason") },

	"node.started": func(p payload) string {
		if p.n("attempt") > 0 {
			return fmt.Sprintf("%s, attempt %d", p.s("typeId"), p.n("attempt")+1)
		}
		return p.s("typeId")
	},
	"node.completed": func(p payload) string { return after("outputs ", p.keys("outputs")) },
	"node.failed": func(p payload) string {
		text := p.failure("error")
		if p.n("attempts") > 1 {
			text += fmt.Sprintf(" (after %d attempts)", p.n("attempts"))
		}
		return text
	},
	"node.retried": func(p payload) string {
		if p.s("reason") == runstate.Branched {
			return fmt.Sprintf("the branch starts here, attempt %d follows", p.n("attempt")+1)
		}
		next := p.in("lastError").in("details").in("next").model()
		return join(", ", fmt.Sprintf("attempt %d follows in %d ms", p.n("attempt")+1, p.n("delayMs")),
			after("with ", next), after("after ", p.failure("lastError")))
	},
	"node.skipped":            func(p payload) string { return p.s("reason") },
	"node.cancelled":          func(p payload) string { return p.s("reason") },
	"node.suspended":          func(p payload) string { return after("waits for ", p.s("kind")) },
	"node.resumed":            func(p payload) string { return after("with ", p.s("resumeValue")) },
	"node.dispatched":         func(p payload) string { return join(" of workflow ", "run "+p.s("childRunId"), p.s("childWorkflowId")) },
	"variable.changed":        func(p payload) string { return p.s("name") + " = " + p.s("next") },
	"channel.written":         func(p payload) string { return fmt.Sprintf("%s %s %s", p.s("channel"), p.s("reducer"), p.s("value")) },
	"workflow.loopback-limit": func(p payload) string { return fmt.Sprintf("round %s of at most %s", p.s("iterations"), p.s("limit")) },
	"cap.breached": func(p payload) string {
		return fmt.Sprintf("%s: %s of at most %s", p.s("kind"), p.s("observed"), p.s("limit"))
	},
	"version.pinned": func(p payload) string { return p.s("changeId") + " = " + p.s("version") },
	"replay.diverged": func(p payload) string {
		return join(" ", p.s("divergenceKind"), after("at event ", p.s("atSequence")), after("of ", p.s("sourceRunId")), after("at ", p.s("divergencePoint")))
	},

	"interrupt.requested": func(p payload) string { return Question(p.s("kind"), p["data"]) },
	"interrupt.resolved": func(p payload) string {
		return join(" ", p.s("kind"), cmp.Or(p.in("resumeValue").s("action"), p.s("outcome"), "answered"), after("by ", p.s("resolvedBy")), after("because of ", p.s("reason")))
	},
	"approval.requested": func(p payload) string { return Question("approval", map[string]any(p)) },
	"approval.received": func(p payload) string {
		return join(" ", p.s("action"), after("by ", p.s("decidedBy")), after("- ", cmp.Or(p.s("comment"), p.s("feedback"))))
	},
	"approval.overridden":     func(p payload) string { return join(": ", after("by ", p.s("principal")), p.s("reason")) },
	"clarification.requested": func(p payload) string { return questions(p.list("questions")) },
	"clarification.resolved": func(p payload) string {
		if p["declined"] == true {
			return join(" ", "declined", after("by ", p.s("answeredBy")))
		}
		return join(" ", after("answers ", p.keys("answers")), after("by ", p.s("answeredBy")))
	},

	"envelope.retry.attempted": func(p payload) string {
		return fmt.Sprintf("attempt %s, %s", p.s("attempt"), join(": ", p.s("reason"), p.s("previousError")))
	},
	"envelope.retry.exhausted": func(p payload) string {
		return fmt.Sprintf("after %s attempts, %s", p.s("totalAttempts"), join(": ", p.s("finalReason"), p.s("finalError")))
	},
	"envelope.refusal": func(p payload) string {
		return join(": ", p.model()+" refused", p.s("safetyCategory"), cmp.Or(p.s("refusalText"), "text withheld by policy"))
	},
	"envelope.truncated": func(p payload) string {
		return join(" ", p.model()+" was cut off", counted("after", p.s("outputTokenCount"), "tokens"), after("by ", p.s("stopReason")))
	},
	"envelope.nlToFormat.engaged": func(p payload) string { return "answer in prose first, then as " + p.s("originalEnvelopeType") },
	"envelope.recovery.applied":   func(p payload) string { return join(" at byte ", p.s("path"), p.s("byteOffset")) },

	"provider.usage": usage,
	"model.capability.substituted": func(p payload) string {
		return fmt.Sprintf("%s/%s lacks %s, substituted by %s/%s", p.s("originalProvider"), p.s("originalModel"), p.words("missingCapabilities"), p.s("fallbackProvider"), p.s("fallbackModel"))
	},
	"model.capability.insufficient": func(p payload) string {
		return fmt.Sprintf("%s lacks %s, no substitute", p.model(), p.words("missingCapabilities"))
	},
	"output.chunk":          func(p payload) string { return strconv.Quote(cut(p.s("chunk"))) },
	"prompt.composed":       func(p payload) string { return join(" of ", p.s("kind"), p.words("refs")) },
	"agent.reasoning.delta": func(p payload) string { return strconv.Quote(cut(p.s("delta"))) },
	"agent.reasoned":        func(p payload) string { return cut(p.s("reasoning")) },
	"agent.toolCalled":      func(p payload) string { return cmp.Or(p.s("toolName"), p.s("toolId"), p.s("name")) },
	"agent.toolReturned": func(p payload) string {
		return join(" ", cmp.Or(p.s("toolName"), p.s("toolId"), p.s("callId")), p.s("status"), p.failure("error"))
	},

	"artifact.created": func(p payload) string { return join(" ", p.s("artifactType"), p.s("artifactId"), p.s("label")) },
	"log.appended":     func(p payload) string { return join(": ", p.s("level"), p.s("message")) },
}

func usage(p payload) string {
	text := fmt.Sprintf("%s, %s tokens in, %s out", p.model(), p.s("inputTokens"), p.s("outputTokens"))
	if p["costEstimateUsd"] == nil {
		return text // an unknown cost is not 0
	}
	return text + fmt.Sprintf(", %s %s (estimate)", p.s("costEstimateUsd"), cmp.Or(p.s("currency"), "USD"))
}

// Question summarizes the question of an interrupt in one line.
func Question(kind string, data any) string {
	p := payload(nil)
	switch d := data.(type) {
	case map[string]any:
		p = d
	case json.RawMessage:
		p = read(d)
	}
	switch kind {
	case "approval":
		return approval(p)
	case "clarification":
		return questions(p.list("questions"))
	case "external-event":
		return join(" ", "event", p.s("eventType"))
	case "low-confidence":
		return fmt.Sprintf("%s has confidence %s, needs %s", p.s("agentId"), p.s("observed"), p.s("threshold"))
	default:
		if title := form(p); title != "" {
			return title
		}
		return join(" ", kind, p.s("customKind"))
	}
}

// form returns the heading of a form; empty if the payload has no form.
func form(p payload) string {
	doc, err := json.Marshal(p)
	if err != nil {
		return ""
	}
	var d struct {
		CustomKind string          `json:"customKind"`
		Payload    json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(doc, &d) != nil || d.CustomKind != a2ui.Kind {
		return ""
	}
	if s, wrong := a2ui.Read(d.Payload); len(wrong) == 0 {
		for _, c := range s.Components {
			if c.Text != "" {
				return "a form: " + cut(c.Text)
			}
		}
	}
	return "a form"
}

func approval(p payload) string {
	actions := p.words("actions")
	if actions != "" {
		actions = "(" + actions + ")"
	}
	return join(" ", p.s("title"), actions)
}

func questions(list []any) string {
	if len(list) == 0 {
		return ""
	}
	first, _ := list[0].(map[string]any)
	text := payload(first).s("question")
	if len(list) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(list)-1)
	}
	return text
}
