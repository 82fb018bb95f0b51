package pack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
)

// roles are the common roles of nodes. The protocol leaves the list open.
var roles = []string{"pure", "side-effect", "human-input", "streaming-output", "gate"}

// semver is the form of a node's version.
var semver = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// addDoubts reports probable mistakes in a valid pack. doc is its manifest.
func (l *loader) addDoubts(p *Pack, m *Manifest, doc []byte) {
	doubt := func(path, format string, args ...any) {
		l.doubts = append(l.doubts, Note{fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), p.Folder, Problem{File, path, sentence(format, args)}})
	}
	for i, n := range m.Nodes {
		at := "/nodes/" + strconv.Itoa(i)
		if !slices.Contains(roles, n.Role) {
			if near := schema.Near(n.Role, roles); near != "" {
				doubt(at+"/role", "no common role; did you mean %s?", near)
			}
		}
		if !semver.MatchString(n.Version) {
			doubt(at+"/version", "want a version of three numbers, such as 1.2.0")
		}
		if l.host.Outputs != nil && p.Nodes[i].Base != "" {
			l.doubtPorts(n, p.Nodes[i].Base, at, doubt)
		}
	}
	for _, name := range sortedNames(m.PeerMeta) {
		if _, there := m.PeerDependencies[name]; !there {
			doubt("/peerDependenciesMeta/"+jsonpointer.Escape(name), "peerDependencies has no %q, so this has no effect%s", name, meant(name, sortedNames(m.PeerDependencies)))
		}
	}
	var engines struct {
		Engines map[string]json.RawMessage `json:"engines"`
	}
	if json.Unmarshal(doc, &engines) != nil {
		return
	}
	for _, name := range sortedNames(engines.Engines) {
		if near := schema.Near(name, []string{"openwop", "waybill"}); name != "openwop" && (near != "" || name == "waybill") {
			doubt("/engines/"+jsonpointer.Escape(name), "this host checks the version of openwop only, so this has no effect")
		}
	}
}

// doubtPorts reports sensitive ports that the node's base does not have: no value is masked for them.
func (l *loader) doubtPorts(n Node, base, at string, doubt func(path, format string, args ...any)) {
	ports := l.host.Outputs(base)
	if len(ports) == 0 {
		return
	}
	for _, port := range sortedNames(n.Outputs) {
		if n.Outputs[port].Sensitive && !slices.Contains(ports, port) {
			doubt(at+"/outputs/"+jsonpointer.Escape(port), "%s has no such output, so no value is masked%s; its outputs: %s", base, meant(port, ports), strings.Join(ports, ", "))
		}
	}
}

// sentence formats a message. A suggestion ends with a question mark, so no semicolon follows it.
func sentence(format string, args []any) string {
	return strings.ReplaceAll(fmt.Sprintf(format, args...), "?; ", "? ")
}

// meant returns a suggestion, as the end of a message; empty if no known name is close.
func meant(name string, known []string) string {
	if near := schema.Near(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
