package pack

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/modelgate"
)

// Source is the location of a pack. FS must confine reads to the pack's folder, including those
// through links, as the file system of an os.Root does.
type Source struct {
	// Folder names the pack in messages until its manifest is read.
	Folder string
	FS     fs.FS
}

// Pack is a valid pack.
type Pack struct {
	Folder, Name, Version string
	Kinds                 []EnvelopeKind
	// Nodes are its node types, in the order of the manifest.
	Nodes []NodeType
	// Prompts are its unparsed prompt templates; this package does not define their format.
	Prompts []PromptFile
	// Agents are the agents in the pack, which this host does not execute.
	Agents []string
}

// EnvelopeKind is an envelope kind in a pack, with its schema.
type EnvelopeKind struct {
	Name    string
	Version int
	Schema  []byte
	// File is the schema's path within the pack, At the path of the declaration in the manifest.
	File, At string
}

// PromptFile is a file with a prompt template.
type PromptFile struct {
	File     string
	Document []byte
}

// Note is information for the operator about a pack that was loaded.
type Note struct {
	Pack, Folder string
	Problem
}

// String returns the note as a line.
func (n Note) String() string { return fmt.Sprintf("pack %s: %s", n.Pack, n.shown()) }

// Load reads packs: all of them or none. It returns them in the order of their folders, regardless
// of the order of the sources. The error joins all problems, with pack, file and path: a
// fault.HostCapabilityMissing for missing host capabilities, otherwise a fault.ValidationError.
func Load(sources []Source, h Host) ([]*Pack, []Note, error) {
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int { return cmp.Compare(a.Folder, b.Folder) })
	l := loader{host: h}
	for _, s := range sources {
		l.load(s)
	}
	l.compare()
	if err := errors.Join(l.errs...); err != nil {
		return nil, nil, err
	}
	return l.packs, append(l.notes, l.doubts...), nil
}

// loader collects packs, notes and errors.
type loader struct {
	host  Host
	packs []*Pack
	needs []map[string]string // the dependencies of each pack
	notes []Note
	// doubts are notes about probable mistakes, in the order in which they were found.
	doubts []Note
	errs   []error
}

// fail adds an error. folder is that of the pack, label its name in the message.
func (l *loader) fail(code fault.Code, folder, label string, p Problem) {
	e := fault.New(code, "pack %s: %s", label, p.shown())
	l.errs = append(l.errs, e.With("pack", label).With("folder", folder).With("file", p.File).With("path", p.Path).With("problem", p.Message))
}

// load reads one pack.
func (l *loader) load(s Source) {
	failed := len(l.errs)
	doc, err := read(s.FS, File, maxManifest)
	if err != nil {
		l.fail(fault.ValidationError, s.Folder, s.Folder, Problem{File, "", err.Error() + "; a pack is a folder with a " + File})
		return
	}
	o, found := readOwn(s.FS)
	m, wrong := parse(doc, o != nil)
	if o == nil {
		o = &own{}
	}
	p, label := &Pack{Folder: s.Folder}, s.Folder
	reported := slices.Concat(wrong, found)
	named := m
	if m != nil && slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.TypeID == "" }) ||
		slices.ContainsFunc(wrong, func(p Problem) bool { return strings.EqualFold(p.Path, "/nodes") }) {
		named = nil // the pack's nodes are unknown
	}
	found = slices.Concat(o.check(named), p.readKinds(s.FS, o), p.readPrompts(s.FS, o))
	if m != nil {
		p.Name, p.Version = m.Name, m.Version
		found = append(found, p.readNodes(s.FS, m, o, l.host)...)
	}
	// Report only the schema's problem for a path that has one.
	found = slices.DeleteFunc(found, func(p Problem) bool {
		return slices.ContainsFunc(reported, func(t Problem) bool { return t.File == p.File && t.Path == p.Path })
	})
	if m != nil && len(wrong) == 0 {
		label = fmt.Sprintf("%s (folder %s)", m.Name, s.Folder)
	}
	all := slices.Concat(reported, found)
	for i, problem := range all {
		if !slices.Contains(all[:i], problem) { // several nodes of one typeId share a base
			l.fail(fault.ValidationError, s.Folder, label, problem)
		}
	}
	if m != nil {
		l.checkVersion(s.Folder, label, "/engines/openwop", "this host speaks OpenWOP", l.host.Protocol, m.Engines.OpenWOP)
		l.checkPeers(s.Folder, label, m, wrong)
	}
	if len(l.errs) == failed {
		l.packs, l.needs = append(l.packs, p), append(l.needs, m.Dependencies)
		l.addNotes(p, m)
		l.addDoubts(p, m, doc)
	}
}

// readKinds reads the schemas of the pack's kinds.
func (p *Pack) readKinds(pack fs.FS, o *own) (found []Problem) {
	for i, k := range o.Kinds {
		at := "/envelopeKinds/" + strconv.Itoa(i)
		if _, ok := within(k.SchemaRef); !ok {
			continue // reported already
		}
		doc, wrong := readJSON(pack, OwnFile, at+"/schemaRef", k.SchemaRef)
		found = append(found, wrong...)
		if wrong != nil {
			continue
		}
		file, _ := within(k.SchemaRef)
		if version, is, err := SchemaVersion(doc); err != nil {
			found = append(found, Problem{file, "", err.Error()})
		} else if is && version != k.version() {
			found = append(found, Problem{file, "/x-schemaVersion", fmt.Sprintf("is %d, but %s at %q has %d; use the same version in both", version, OwnFile, at+"/version", k.version())})
		}
		p.Kinds = append(p.Kinds, EnvelopeKind{Name: k.Name, Version: k.version(), Schema: doc, File: file, At: at})
	}
	return found
}

// readPrompts reads the files of the pack's prompt templates.
func (p *Pack) readPrompts(pack fs.FS, o *own) (found []Problem) {
	for i, ref := range o.Prompts {
		name, ok := within(ref)
		if !ok {
			continue // reported already
		}
		doc, wrong := readJSON(pack, OwnFile, "/prompts/"+strconv.Itoa(i), ref)
		found = append(found, wrong...)
		if wrong == nil {
			p.Prompts = append(p.Prompts, PromptFile{name, doc})
		}
	}
	return found
}

// checkVersion rejects a version outside the required range.
func (l *loader) checkVersion(folder, label, at, there, version, versions string) {
	if l.host.InRange == nil || l.host.Any || versions == "" {
		return
	}
	in, err := l.host.InRange(version, versions)
	switch {
	case err != nil:
		l.fail(fault.ValidationError, folder, label, Problem{File, at, "want a range of versions, such as \">=1.0 <2.0.0\""})
	case !in:
		l.fail(fault.ValidationError, folder, label, Problem{File, at, fmt.Sprintf("%s %s, which is outside this range", there, version)})
	}
}

// checkPeers rejects a pack that requires a capability the host does not offer, unless the pack
// declares it optional (OpenWOP envelope contract §16.5). Requirements with reported problems are
// skipped.
func (l *loader) checkPeers(folder, label string, m *Manifest, reported []Problem) {
	isTold := func(path string) bool {
		return slices.ContainsFunc(reported, func(p Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+"/") })
	}
	missing, wrong := m.unmetPeers(l.host)
	for _, p := range wrong {
		if !isTold(p.Path) {
			l.fail(fault.ValidationError, folder, label, p)
		}
	}
	for _, u := range missing {
		if isTold(u.path) {
			continue
		}
		if u.optional {
			l.notes = append(l.notes, Note{label, folder, Problem{File, u.path, "without " + u.what + ", which this host does not offer; the pack declares it optional"}})
			continue
		}
		remedy := "; remove the pack, or mark the capability as optional in peerDependenciesMeta"
		if u.meant != "" {
			remedy = "; did you mean " + u.meant + "?"
		}
		l.fail(fault.HostCapabilityMissing, folder, label, Problem{File, u.path, "needs " + u.what + ", which this host does not offer" + remedy})
	}
}

// addNotes reports the parts of a valid pack that have no effect here.
func (l *loader) addNotes(p *Pack, m *Manifest) {
	label := fmt.Sprintf("%s (folder %s)", p.Name, p.Folder)
	note := func(path, format string, args ...any) {
		l.notes = append(l.notes, Note{label, p.Folder, Problem{File, path, sentence(format, args)}})
	}
	for i, n := range p.Nodes {
		if n.Base == "" {
			note("/nodes/"+strconv.Itoa(i), "this host has no runtime for nodes of packs, and %s does not define an implementation for this one; runs of workflows with %q are rejected with %s",
				OwnFile, n.TypeID, fault.CapabilityRequired)
		}
	}
	for i, n := range m.Nodes {
		for j, id := range n.Required {
			if !slices.Contains(modelgate.Reserved(), id) && !strings.HasPrefix(id, "x-host-") {
				note(fmt.Sprintf("/nodes/%d/requiredModelCapabilities/%d", i, j), "%q is not a capability of the protocol, and no model is known to have it%s; "+
					"those are %s, and a host's own begin with x-host-", id, meant(id, modelgate.Reserved()), strings.Join(modelgate.Reserved(), ", "))
			}
		}
	}
	for i, id := range p.Agents {
		note("/agents/"+strconv.Itoa(i), "this host does not execute agents; %q is ignored", id)
	}
	if m.Signing != nil {
		note("/signing", "this host does not check signatures of packs")
	}
}

// compare checks the packs against each other.
func (l *loader) compare() {
	byName, owners, types := map[string]*Pack{}, map[string]*Pack{}, map[string]string{}
	for _, id := range l.host.Types {
		types[id] = "this host"
	}
	for _, p := range l.packs {
		if other, taken := byName[p.Name]; taken {
			l.fail(fault.ValidationError, p.Folder, p.Folder, Problem{File, "/name", fmt.Sprintf("folder %s also holds pack %s; keep one of the two", other.Folder, p.Name)})
			continue
		}
		byName[p.Name] = p
		for i, n := range p.Nodes {
			if owner, taken := types[n.TypeID]; taken {
				l.fail(fault.ValidationError, p.Folder, fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), Problem{
					File, "/nodes/" + strconv.Itoa(i) + "/typeId", fmt.Sprintf("the node type %s is also declared by %s; keep one of the two", n.TypeID, owner),
				})
				continue
			}
			types[n.TypeID] = fmt.Sprintf("pack %s (folder %s)", p.Name, p.Folder)
		}
		for _, k := range p.Kinds {
			if owner, taken := owners[k.Name]; taken {
				l.fail(fault.ValidationError, p.Folder, fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), Problem{
					OwnFile, k.At + "/kind",
					fmt.Sprintf("the kind %s is also declared by pack %s (folder %s); a kind has one schema per host, so keep one of the two packs", k.Name, owner.Name, owner.Folder),
				})
				continue
			}
			owners[k.Name] = p
		}
	}
	if len(l.errs) > 0 || l.host.Any {
		return // dependents of a rejected pack are not at fault
	}
	for i, p := range l.packs {
		for _, name := range sortedNames(l.needs[i]) {
			label, at := fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), "/dependencies/"+jsonpointer.Escape(name)
			if other := byName[name]; other != nil {
				l.checkVersion(p.Folder, label, at, "there is "+name, other.Version, l.needs[i][name])
				continue
			}
			if l.host.Partial {
				l.doubts = append(l.doubts, Note{label, p.Folder, Problem{File, at, "a host needs this pack, too"}})
				continue
			}
			l.fail(fault.ValidationError, p.Folder, label, Problem{File, at, "the pack it depends on is missing; add it to the packs folder"})
		}
	}
}

// Accepted lists the kinds that the pack's contracts accept, sorted, each with the first node type
// that accepts it.
func (p *Pack) Accepted() []Accepted {
	var out []Accepted
	for _, n := range p.Nodes {
		if n.Contract != nil {
			for _, kind := range n.Contract.Accepts {
				out = append(out, Accepted{Kind: kind, TypeID: n.TypeID})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Accepted) int { return strings.Compare(a.Kind, b.Kind) })
	return slices.CompactFunc(out, func(a, b Accepted) bool { return a.Kind == b.Kind })
}

// Accepted is a kind accepted by a node type's contract.
type Accepted struct{ Kind, TypeID string }
