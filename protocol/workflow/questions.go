package workflow

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// MaxQuestionTimeout is the longest time limit of a model's question; that of other interrupts.
const MaxQuestionTimeout = 366 * 24 * time.Hour

// DeclinePolicy is what happens to a node whose model's question is declined.
type DeclinePolicy string

// The policies. By default the model gets a message and continues.
const (
	DeclineContinue DeclinePolicy = "continue"
	DeclineFail     DeclinePolicy = "fail"
)

// QuestionSettings are settings.questions, an extension of this host: how the questions of a node's
// model (clarification.request) may be answered.
type QuestionSettings struct {
	// Timeout is the time limit for an answer; 0 means none. It is nil if the node sets none.
	Timeout *time.Duration
	// OnDecline is what happens to the node if an answer is declined.
	OnDecline DeclinePolicy
}

// The members of settings.questions.
const (
	memberQuestions = "questions"
	memberTimeoutMs = "timeoutMs"
	memberOnDecline = "onDecline"
)

// Questions returns the node's settings for its model's questions.
func (n *Node) Questions() QuestionSettings {
	q := members(members(n.Settings)[memberQuestions])
	out := QuestionSettings{OnDecline: DeclineContinue}
	if DeclinePolicy(q.text(memberOnDecline)) == DeclineFail {
		out.OnDecline = DeclineFail
	}
	if ms, ok := q.integer(memberTimeoutMs); ok && ms >= 0 {
		limit := time.Duration(min(ms, MaxQuestionTimeout.Milliseconds())) * time.Millisecond
		out.Timeout = &limit
	}
	return out
}

// HasQuestions reports whether the node has settings for questions.
func (n *Node) HasQuestions() bool { return members(n.Settings)[memberQuestions] != nil }

// checkQuestions checks settings.questions.
func checkQuestions(settings json.RawMessage, path string, found *problems) {
	raw := members(settings)[memberQuestions]
	if raw == nil {
		return
	}
	at, q := path+"/"+memberQuestions, members(raw)
	if strictjson.KindOf(raw) != "an object" {
		found.add(at, RuleQuestions, "want an object with timeoutMs and onDecline, each optional")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if name != memberTimeoutMs && name != memberOnDecline {
			found.add(at+pointer(name), RuleQuestions, schema.UnknownMember(name, []string{memberTimeoutMs, memberOnDecline}, q))
		}
	}
	if ms, ok := q.integer(memberTimeoutMs); q[memberTimeoutMs] != nil && (!ok || ms < 0 || ms > MaxQuestionTimeout.Milliseconds()) {
		found.add(at+"/"+memberTimeoutMs, RuleQuestions, "want milliseconds, an integer from 1 to 31622400000; 0 means no limit, without it the host's applies")
	}
	if p := DeclinePolicy(q.text(memberOnDecline)); q[memberOnDecline] != nil && p != DeclineContinue && p != DeclineFail {
		found.add(at+"/"+memberOnDecline, RuleQuestions, `want "continue", which sends the model a message, or "fail"`)
	}
}
