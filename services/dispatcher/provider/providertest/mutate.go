package providertest

import "strings"

// SameStreams returns streams of events that mean the same as a stream with an empty line after each event:
// with other line endings, and with what servers insert to keep a connection open.
func SameStreams(body string) map[string]string {
	out := map[string]string{
		"as it is":                 body,
		"carriage returns":         strings.ReplaceAll(body, "\n", "\r\n"),
		"carriage returns alone":   strings.ReplaceAll(body, "\n", "\r"),
		"no empty lines":           strings.ReplaceAll(body, "\n\n", "\n"),
		"more empty lines":         strings.ReplaceAll(body, "\n\n", "\n\n\n\n"),
		"no space after the colon": strings.ReplaceAll(body, "data: ", "data:"),
		"a byte order mark":        "\ufeff" + body,
		"a byte order mark each":   strings.ReplaceAll(body, "data: ", "\ufeffdata: "),
		"no line at the end":       strings.TrimRight(body, "\n"),
		"ids":                      strings.ReplaceAll(body, "data: ", "id: 7\nretry: 10\ndata: "),
		"repeated by a proxy":      strings.ReplaceAll(body, "data: ", "data: data: "),
	}
	for name, inserted := range map[string]string{
		"comments": ": ping\n\n", "empty data": "data:\n\n", "pings": "event: ping\ndata: ping\n\n", "null": "data: null\n\n", "words": "data: keep-alive\n\n",
	} {
		out[name] = inserted + strings.ReplaceAll(body, "\n\n", "\n\n"+inserted)
	}
	return out
}
