package completion

import "strings"

const (
	openMark  = "<UNTRUSTED"
	closeMark = "</UNTRUSTED"
)

// quote fences text the host does not vouch for, so that a model reads it as
// material and not as instruction. A mark inside the text is broken up: content
// cannot close its own fence (OpenWOP envelope contract §12).
func quote(text string) string {
	text = strings.ReplaceAll(text, closeMark, "<\u200b/UNTRUSTED")
	text = strings.ReplaceAll(text, openMark, "<\u200bUNTRUSTED")
	return openMark + ` source="run-event" type="model-answer">` + "\n" + text + "\n" + closeMark + ">"
}
