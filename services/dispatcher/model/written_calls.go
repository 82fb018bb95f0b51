package model

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Servers without a parser for a model's calls of tools leave them in the text, in the notation of the model's
// template. The input of another tool than that of the answer is not the answer, and what the model wrote before
// such a call is a draft: it waits for the tool's result.

// writtenCall is a call of a tool in a text.
type writtenCall struct {
	tool string
	at   int
}

// openCall is the call whose input is being read.
type openCall struct {
	open bool
	// tool is empty if the input has the name.
	tool string
	// once means that no mark ends the call: its input is one document.
	once bool
}

var (
	// callTag matches the tags that begin a call: of Hermes, Qwen, GLM, MiniMax, Seed, Claude, OLMo.
	callTag = regexp.MustCompile(`(?i)^<(?:\w+:)?(?:tool[-_]?calls?|function[-_]?calls?|tool[-_]?use|invoke|function)(?:[ =][^<>{}\[\n]*)?>`)
	// callToken matches the tokens that begin a call: of DeepSeek, Kimi, Granite, Llama, Cohere, InternLM, LFM.
	callToken = regexp.MustCompile(`(?i)^<[|｜](?:tool[_▁]calls?(?:[_▁]section)?(?:[_▁](?:begin|start))?|python_tag|start_action|action_start)[|｜]>`)
	// callBracket matches the token of Mistral.
	callBracket = regexp.MustCompile(`^\[TOOL_CALLS\]`)
	// callEnd matches the tags and tokens that end a call.
	callEnd = regexp.MustCompile(`(?i)^(?:</(?:\w+:)?(?:tool[-_]?calls?|function[-_]?calls?|tool[-_]?use|invoke|function)>|` +
		`<[|｜](?:tool[_▁]calls?(?:[_▁]section)?[_▁]end|/tool_call|end_action|action_end|eom_id)[|｜]>|\[/TOOL_CALLS\])`)
	// attributeName matches the name of a tool in a tag, followingName one after a tag or a token.
	attributeName = regexp.MustCompile(`(?:\bname\s*=\s*|^<(?:\w+:)?function=)["']?([\w.:-]+)`)
	followingName = regexp.MustCompile(`^\s*(?:function<[|｜]tool[▁_]sep[|｜]>)?([\w.-]*[A-Za-z][\w.-]*)(?::\d+)?(?:\[CALL_ID\]\w+)?\s*(?:\n|<|\[ARGS\]|\{|\()`)
	// recipient matches the tool in the header of a message in the harmony format.
	recipient = regexp.MustCompile(`\bto=([\w.-]+)`)
	// toolCode matches the first call in a block of Gemma and Gemini.
	toolCode = regexp.MustCompile(`^\s*(?:print\()?\s*([A-Za-z_][\w.]*)\(`)
	// functionaryCall matches the line above the input of a tool of Functionary.
	functionaryCall = regexp.MustCompile(`(?:^|\n)>>>[ \t]*([\w.-]+)[ \t]*\n\s*$`)
)

// passCall passes over a mark that begins or ends a call; ok is false if there is none at the position.
func (s *searcher) passCall(rest string) (ok bool) {
	head := rest[:min(len(rest), maxTag)]
	if callEnd.MatchString(head) {
		s.call = openCall{}
		s.pos++
		s.budget -= attempt
		return true
	}
	mark, once := callBracket.FindString(head), true
	if mark == "" {
		mark, once = callTag.FindString(head), false
	}
	if mark == "" {
		mark = callToken.FindString(head)
		once = strings.Contains(strings.ToLower(mark), "python_tag")
	}
	if mark == "" {
		return false
	}
	s.budget -= attempt
	s.call = openCall{open: true, once: once}
	if m := attributeName.FindStringSubmatch(mark); m != nil {
		s.call.tool = m[1]
	} else if m := followingName.FindStringSubmatch(head[len(mark):]); m != nil {
		s.call.tool = m[1]
	}
	s.noteCall(s.call.tool, s.pos)
	s.pos += len(mark)
	return true
}

// noteCall keeps a call for the end of the text. Models write that they call none.
func (s *searcher) noteCall(tool string, at int) {
	if tool != "" && !slices.Contains([]string{"none", "null", "na", "nil", "notool"}, plainName(strings.ReplaceAll(tool, "/", ""))) {
		s.found.calls = append(s.found.calls, writtenCall{tool, at})
	}
}

// toolOf returns the name of the tool that gets a document as its input; empty for none.
func (s *searcher) toolOf(d document) string {
	tool := ""
	if s.call.open {
		if tool = s.call.tool; tool == "" {
			tool = nameOfCall(d.raw)
		}
		s.call.open = !s.call.once
	} else {
		tool = s.calledTool(d.begins)
	}
	s.noteCall(tool, d.begins)
	return tool
}

// nameOfCall returns the name of a tool in a document that is its call, or in a list of one.
func nameOfCall(raw json.RawMessage) string {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) == nil && len(items) > 0 {
		raw = items[len(items)-1]
	}
	m := strictjson.Object(raw)
	if inner := strictjson.Object(m["function"]); inner != nil {
		m = inner
	}
	for _, member := range []string{"name", "tool_name", "tool", "function"} {
		if name, ok := strictjson.String(m[member]); ok {
			return name
		}
	}
	return ""
}

// withoutCalls leaves out the inputs of tools other than that of the answer, and the drafts before the call of
// one.
func (e *emission) withoutCalls(x extraction) extraction {
	if len(x.calls) == 0 && !slices.ContainsFunc(x.documents, func(d document) bool { return d.tool != "" }) {
		return x
	}
	names := (&reader{emission: e}).wrapperNames(nil)
	foreign := func(tool string) bool {
		return tool != "" && !slices.Contains(names, plainName(tool)) && !slices.Contains(names, plainName(tool[strings.LastIndexByte(tool, '.')+1:]))
	}
	found := len(x.documents)
	x.documents = slices.DeleteFunc(slices.Clone(x.documents), func(d document) bool { return foreign(d.tool) })
	for _, c := range slices.Backward(x.calls) {
		if foreign(c.tool) {
			if !slices.ContainsFunc(x.documents, func(d document) bool { return d.offset > c.at || d.tool != "" }) {
				x.documents, x.interim = nil, true
			}
			break
		}
	}
	x.rejected = x.rejected || found > 0 && len(x.documents) == 0
	return x
}
