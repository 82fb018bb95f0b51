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
)

// Source is where a pack lies. FS must keep reads within the pack's folder, also
// those through links, as the file system of an os.Root does.
type Source struct {
	// Folder names the pack in messages until its manifest could be read.
	Folder string
	FS     fs.FS
}

// Pack is a pack that was read and found sound.
type Pack struct {
	Folder, Name, Version string
	Kinds                 []EnvelopeKind
	// Nodes are its node types, in the order of the manifest.
	Nodes []NodeType
	// Prompts are its prompt templates, as they were read: what a template is, is not the
	// vocabulary's to say.
	Prompts []PromptFile
	// Agents name what the pack brings and this host does not execute.
	Agents []string
}

// EnvelopeKind is a kind that a pack brings, with its schema.
type EnvelopeKind struct {
	Name    string
	Version int
	Schema  []byte
	// File is the schema's path within the pack, At the place of the declaration in
	// the manifest.
	File, At string
}

// PromptFile is a file with a prompt template.
type PromptFile struct {
	File     string
	Document []byte
}

// Note is something about a pack that an operator should know; the pack is there
// all the same.
type Note struct {
	Pack string
	Problem
}

// String is the note as a line.
func (n Note) String() string { return fmt.Sprintf("pack %s: %s", n.Pack, n.shown()) }

// Load reads packs: all of them or none. They come back in the order of their
// folders, whatever the order of the sources. The error joins what is wrong, with
// the pack, the file and the place: a fault.HostCapabilityMissing for what the
// host lacks, else a fault.ValidationError.
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
	return l.packs, l.notes, nil
}

// loader gathers packs, and what is to be said about them.
type loader struct {
	host  Host
	packs []*Pack
	needs []map[string]string // the dependencies of each
	notes []Note
	errs  []error
}

func (l *loader) fail(code fault.Code, pack string, p Problem) {
	e := fault.New(code, "pack %s: %s", pack, p.shown())
	l.errs = append(l.errs, e.With("pack", pack).With("file", p.File).With("path", p.Path).With("problem", p.Message))
}

// load reads one pack.
func (l *loader) load(s Source) {
	failed := len(l.errs)
	doc, err := read(s.FS, File, maxManifest)
	if err != nil {
		l.fail(fault.ValidationError, s.Folder, Problem{File, "", err.Error() + "; a pack is a folder with a " + File})
		return
	}
	o, found := readOwn(s.FS)
	m, wrong := parse(doc, o != nil)
	if o == nil {
		o = &own{}
	}
	p, label := &Pack{Folder: s.Folder}, s.Folder
	told := slices.Concat(wrong, found)
	named := m
	if m != nil && slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.TypeID == "" }) ||
		slices.ContainsFunc(wrong, func(p Problem) bool { return strings.EqualFold(p.Path, "/nodes") }) {
		named = nil // which nodes there are is not known
	}
	found = slices.Concat(o.check(named), p.readKinds(s.FS, o), p.readPrompts(s.FS, o))
	if m != nil {
		p.Name, p.Version = m.Name, m.Version
		found = append(found, p.readNodes(s.FS, m, o, l.host)...)
	}
	// What the schemas say of a place is enough.
	found = slices.DeleteFunc(found, func(p Problem) bool {
		return slices.ContainsFunc(told, func(t Problem) bool { return t.File == p.File && t.Path == p.Path })
	})
	if m != nil && len(wrong) == 0 {
		label = fmt.Sprintf("%s (folder %s)", m.Name, s.Folder)
	}
	all := slices.Concat(told, found)
	for i, problem := range all {
		if !slices.Contains(all[:i], problem) { // two nodes of one typeId are made of one base
			l.fail(fault.ValidationError, label, problem)
		}
	}
	if m != nil {
		l.checkVersion(label, "/engines/openwop", "this host speaks OpenWOP", l.host.Protocol, m.Engines.OpenWOP)
		l.checkPeers(label, m, wrong)
	}
	if len(l.errs) == failed {
		l.packs, l.needs = append(l.packs, p), append(l.needs, m.Dependencies)
		l.tell(p, m)
	}
}

// readKinds reads the schemas of the pack's kinds.
func (p *Pack) readKinds(pack fs.FS, o *own) (found []Problem) {
	for i, k := range o.Kinds {
		at := "/envelopeKinds/" + strconv.Itoa(i)
		if _, ok := within(k.SchemaRef); !ok {
			continue // told already
		}
		doc, wrong := readJSON(pack, OwnFile, at+"/schemaRef", k.SchemaRef)
		found = append(found, wrong...)
		if wrong != nil {
			continue
		}
		file, _ := within(k.SchemaRef)
		if told, is, err := SchemaVersion(doc); err != nil {
			found = append(found, Problem{file, "", err.Error()})
		} else if is && told != k.version() {
			found = append(found, Problem{file, "/x-schemaVersion", fmt.Sprintf("says %d, and %s at %q says %d; let both say the same", told, OwnFile, at+"/version", k.version())})
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
			continue // told already
		}
		doc, wrong := readJSON(pack, OwnFile, "/prompts/"+strconv.Itoa(i), ref)
		found = append(found, wrong...)
		if wrong == nil {
			p.Prompts = append(p.Prompts, PromptFile{name, doc})
		}
	}
	return found
}

// checkVersion refuses a range that the version of what is there lies outside of.
func (l *loader) checkVersion(label, at, there, version, versions string) {
	if l.host.InRange == nil || l.host.Any || versions == "" {
		return
	}
	in, err := l.host.InRange(version, versions)
	switch {
	case err != nil:
		l.fail(fault.ValidationError, label, Problem{File, at, "want a range of versions, such as \">=1.0 <2.0.0\""})
	case !in:
		l.fail(fault.ValidationError, label, Problem{File, at, fmt.Sprintf("%s %s, which lies outside of this range", there, version)})
	}
}

// checkPeers refuses a pack that needs what the host does not offer, unless it
// says that it can do without (OpenWOP envelope contract §16.5). Nothing is said of needs
// that are told to be wrong.
func (l *loader) checkPeers(label string, m *Manifest, told []Problem) {
	isTold := func(path string) bool {
		return slices.ContainsFunc(told, func(p Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+"/") })
	}
	missing, wrong := m.unmetPeers(l.host)
	for _, p := range wrong {
		if !isTold(p.Path) {
			l.fail(fault.ValidationError, label, p)
		}
	}
	for _, u := range missing {
		if isTold(u.path) {
			continue
		}
		if u.optional {
			l.notes = append(l.notes, Note{label, Problem{File, u.path, "without " + u.what + ", which this host does not offer and the pack can do without"}})
			continue
		}
		l.fail(fault.HostCapabilityMissing, label, Problem{File, u.path, "needs " + u.what + ", which this host does not offer; " +
			"take the pack away, or let peerDependenciesMeta say that it is optional"})
	}
}

// tell says what of a sound pack has no effect here.
func (l *loader) tell(p *Pack, m *Manifest) {
	label := fmt.Sprintf("%s (folder %s)", p.Name, p.Folder)
	note := func(path, format string, args ...any) {
		l.notes = append(l.notes, Note{label, Problem{File, path, fmt.Sprintf(format, args...)}})
	}
	for i, n := range p.Nodes {
		if n.Base == "" {
			note("/nodes/"+strconv.Itoa(i), "this host has no runtime for nodes of packs, and %s does not say of what to make this one; a run of a workflow with %q is refused with %s",
				OwnFile, n.TypeID, fault.CapabilityRequired)
		}
	}
	for i, id := range p.Agents {
		note("/agents/"+strconv.Itoa(i), "this host does not execute agents; %q is not there", id)
	}
	if m.Signing != nil {
		note("/signing", "this host does not check signatures of packs")
	}
}

// compare holds the packs against each other.
func (l *loader) compare() {
	byName, owners, types := map[string]*Pack{}, map[string]*Pack{}, map[string]string{}
	for _, id := range l.host.Types {
		types[id] = "this host"
	}
	for _, p := range l.packs {
		if other, taken := byName[p.Name]; taken {
			l.fail(fault.ValidationError, p.Folder, Problem{File, "/name", fmt.Sprintf("folder %s holds the pack %s already; keep one of the two", other.Folder, p.Name)})
			continue
		}
		byName[p.Name] = p
		for i, n := range p.Nodes {
			if owner, taken := types[n.TypeID]; taken {
				l.fail(fault.ValidationError, fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), Problem{
					File, "/nodes/" + strconv.Itoa(i) + "/typeId", fmt.Sprintf("the node type %s is claimed by %s as well; keep one of the two", n.TypeID, owner),
				})
				continue
			}
			types[n.TypeID] = fmt.Sprintf("pack %s (folder %s)", p.Name, p.Folder)
		}
		for _, k := range p.Kinds {
			if owner, taken := owners[k.Name]; taken {
				l.fail(fault.ValidationError, fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), Problem{
					OwnFile, k.At + "/kind",
					fmt.Sprintf("the kind %s is claimed by pack %s (folder %s) as well; a host has one schema of a kind, so keep one of the two packs", k.Name, owner.Name, owner.Folder),
				})
				continue
			}
			owners[k.Name] = p
		}
	}
	if len(l.errs) > 0 || l.host.Any {
		return // whoever depends on a refused pack is not at fault
	}
	for i, p := range l.packs {
		for _, name := range sortedNames(l.needs[i]) {
			label, at := fmt.Sprintf("%s (folder %s)", p.Name, p.Folder), "/dependencies/"+escape(name)
			if other := byName[name]; other != nil {
				l.checkVersion(label, at, "there is "+name, other.Version, l.needs[i][name])
				continue
			}
			l.fail(fault.ValidationError, label, Problem{File, at, "the pack it depends on is not there; put it beside this one"})
		}
	}
}

// Accepted lists the kinds that the contracts of the pack name, sorted, each with
// the node type that names it first.
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

// Accepted is a kind that a node type's contract names.
type Accepted struct{ Kind, TypeID string }
