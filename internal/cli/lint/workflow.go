package lint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/document"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/internal/host/workflowfolder"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	check "waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// workflowOptions are the flags of `waybill workflow lint`.
type workflowOptions struct {
	limits                    runlimits.Limits
	packs, kinds, prompts     string
	models                    string
	rewrites, warningsAsError bool
}

// Workflow is `waybill workflow lint`.
func Workflow(s *session.Session) *cobra.Command {
	o := workflowOptions{limits: runlimits.Default()}
	c := &cobra.Command{
		Use:     "lint FILE|FOLDER|-...",
		Aliases: []string{"validate"},
		Short:   "Check workflow definitions as a host does",
		Long: `Checks workflow definitions as a host does when they are registered: members and values,
references, node types and their configs, names in prompts, models, envelope kinds, ports, and that
every condition and expression compiles. Each finding has the file, line and column, the JSON
pointer, the rule, and a fix. Warnings are about definitions that a host accepts and that are likely
mistakes, such as an unreachable node. - is standard input; of a folder, all *.json files are
checked, without those in its folders.

Without a host, other names may exist on the host: node types of packs, envelope kinds and prompt
templates. --packs, --kinds and --prompts name the folders that the host has, --models its file of
models. Packs, kinds and templates that a host would reject are findings, too, as are probable
mistakes in them; with errors in packs or templates, definitions are not checked. --url or --context
checks the files on a host, with what that host has; it registers nothing. WAYBILL_URL and WAYBILL_CONTEXT alone have no effect.

Set the limits of your host if they are not the defaults. --rewrites also lists, as warnings, all
rules of output schemas that vendors get in another form.

-o github writes annotations for GitHub Actions, -o sarif a SARIF 2.1.0 log for code scanning. Both name
files relative to the repository of the working directory.

Exit status: 0 no findings, or warnings only; 1 a host would reject a definition; 2 usage, an
unreadable file, or a folder without definitions.`,
		Example: `  waybill workflow lint workflows/*.json
  waybill workflow lint --packs packs --kinds kinds -o github workflows
  waybill workflow lint --url http://127.0.0.1:8080 workflow.json
  waybill workflow lint -o json - < workflow.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			p, format, err := reportPrinter(s, cmd)
			if err != nil {
				return err
			}
			if err := errors.Join(o.limits.Validate()...); err != nil {
				return exit.With(exit.Usage, err)
			}
			known, found, err := o.resources()
			if err != nil {
				return err
			}
			if known == nil {
				session.Notice(cmd, "the definitions are checked when the packs and prompt templates have no errors")
				files = nil
			}
			run, err := o.checker(s, cmd, known)
			if err != nil {
				return err
			}
			together := check.Host{Types: node.Builtin().And(node.PeerTypes()...)}
			if known != nil {
				together.Types = together.Types.With(known.packs)
			}
			return lintWorkflows(cmd, p, format, o.warningsAsError, run, together, files, found)
		},
	}
	f := c.Flags()
	hostflags.RunLimits(f, &o.limits)
	f.StringVar(&o.packs, "packs", "", "folder of the host's packs, whose node types and kinds are known then")
	f.StringVar(&o.kinds, "kinds", "", "folder of the host's envelope kinds")
	f.StringVar(&o.prompts, "prompts", "", "folder of the host's prompt templates")
	f.StringVar(&o.models, "models", "", "the host's JSON file of models, which overrides the built-in catalogue")
	f.BoolVar(&o.rewrites, "rewrites", false, "also list what is sent to vendors in another form")
	f.BoolVar(&o.warningsAsError, "strict", false, "exit with 1 for warnings, too")
	s.TargetFlags(f)
	f.Lookup("url").Usage = "check on the host with this URL, with its base path; empty checks without a host"
	f.Lookup("context").Usage = "check on the host of this context; empty checks without a host"
	s.FormatFlags(f)
	describeFormats(f)
	return c
}

// describeFormats adds the formats of code hosts to the help.
func describeFormats(f *pflag.FlagSet) {
	f.Lookup("output").Usage = "table, json, jsonl, yaml, name, github (annotations) or sarif"
}

// reportPrinter reads the format of a report; format is empty for those of all commands.
func reportPrinter(s *session.Session, cmd *cobra.Command) (p *render.Printer, format string, err error) {
	if format, _ := cmd.Flags().GetString("output"); format == formatSARIF || format == formatGitHub {
		return &render.Printer{Out: cmd.OutOrStdout()}, format, nil
	}
	p, err = s.Printer(cmd)
	if err != nil && !render.Known(cmd.Flags().Lookup("output").Value.String()) {
		err = fmt.Errorf("%w, %s, %s", err, formatGitHub, formatSARIF)
	}
	return p, "", err
}

// checker checks a document.
type checker func(ctx context.Context, doc []byte) (found, warned []workflow.Problem, err error)

// checker returns the check on a host if the flags name one, else that of this process.
func (o *workflowOptions) checker(s *session.Session, cmd *cobra.Command, known *resources) (checker, error) {
	if cmd.Flags().Changed("url") || cmd.Flags().Changed("context") {
		c, err := s.Client(cmd)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, doc []byte) (found, warned []workflow.Problem, err error) {
			return checkOnHost(ctx, c, doc)
		}, nil
	}
	if known == nil {
		return nil, nil // nothing is checked
	}
	h, err := o.host(known)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return func(_ context.Context, doc []byte) (found, warned []workflow.Problem, err error) {
		r := h.Check(doc)
		if o.rewrites && r.Def != nil {
			r.Warnings = append(r.Warnings, h.Types.Rewrites(r.Def, nil)...)
		}
		return append(r.Problems, workflowfolder.Secrets(r.Def)...), r.Warnings, nil
	}, nil
}

// checkOnHost checks a document on a host. A document that is no JSON object is checked here.
func checkOnHost(ctx context.Context, c *client.Client, doc []byte) (found, warned []workflow.Problem, err error) {
	if strictjson.KindOf(doc) != "an object" || strictjson.Check(doc, strictjson.Default) != nil {
		_, found := workflow.Parse(doc)
		return found, nil, nil
	}
	v, err := c.ValidateWorkflow(ctx, doc)
	if err != nil {
		return nil, nil, err
	}
	convert := func(all []client.WorkflowFinding) (out []workflow.Problem) {
		for _, f := range all {
			out = append(out, workflow.Problem{Path: f.Path, Rule: f.Rule, Message: f.Message})
		}
		return out
	}
	return convert(v.Problems), convert(v.Warnings), nil
}

// resources are the packs and prompt templates of a host.
type resources struct {
	packs   []*pack.Pack
	prompts *prompt.Library
}

// resources reads the folders of the flags, and returns the findings in them. known is nil if a host
// would reject packs or templates.
func (o *workflowOptions) resources() (known *resources, found []finding, err error) {
	loaded, found, err := loadPacks(o.packs, o.kinds)
	if err != nil {
		return nil, nil, err
	}
	inKinds, err := kindFindings(o.kinds)
	if err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	library, wrong, err := (&packs.PromptOptions{Dir: o.prompts}).Check(loaded)
	if err != nil {
		return nil, nil, exit.With(exit.Usage, err)
	}
	inTemplates := templateFindings(func(folder string) string { return filepath.Join(o.packs, folder) }, wrong)
	isError := func(f finding) bool { return !f.Warning }
	rejected := loaded == nil && slices.ContainsFunc(found, isError) || slices.ContainsFunc(inTemplates, isError)
	if o.prompts != "" && library.Empty() && len(inTemplates) == 0 {
		inTemplates = []finding{{File: o.prompts, Rule: ruleTemplateDoubt, Warning: true, Message: "the folder has no prompt template; templates are files *.json"}}
	}
	found = slices.Concat(found, inKinds, inTemplates)
	locateFiles(found)
	if rejected {
		return nil, found, nil
	}
	return &resources{loaded, library}, found, nil
}

// host returns what is known of the host.
func (o *workflowOptions) host(known *resources) (check.Host, error) {
	h := check.Host{Types: node.Builtin().And(node.PeerTypes()...), Limits: node.Limits(o.limits)}
	var err error
	if h.Models, err = models.LoadCatalogue(o.models); err != nil {
		return h, err
	}
	h.Types = h.Types.With(known.packs)
	if o.kinds != "" || o.packs != "" {
		if h.KindSchemas, err = kindSchemas(o.kinds, known.packs); err != nil {
			return h, err
		}
		h.Kinds = slices.Sorted(maps.Keys(h.KindSchemas))
	}
	h.Prompts = known.prompts
	return h, nil
}

// lintWorkflows reports the findings in all files, and fails if a host would reject a definition. all are
// findings in other files.
func lintWorkflows(cmd *cobra.Command, p *render.Printer, format string, strict bool, run checker, host check.Host, args []string, all []finding) error {
	files, err := expandFolders(args)
	if err != nil {
		return err
	}
	refused := 0
	for _, f := range all {
		if strict || !f.Warning {
			refused++
		}
	}
	docs, defs := make([][]byte, len(files)), make([]*workflow.Definition, len(files))
	for i, name := range files {
		if docs[i], err = document.Read(cmd.InOrStdin(), name); err != nil {
			return err
		}
		if def, wrong := workflow.Parse(docs[i]); len(wrong) == 0 {
			defs[i] = def
		}
	}
	mutual := host.CheckTogether(defs)
	for i, name := range files {
		doc := docs[i]
		found, warned, err := run(cmd.Context(), doc)
		if err != nil {
			return err
		}
		warned = append(warned, mutual[i]...)
		refused += len(found)
		if strict {
			refused += len(warned)
		}
		for _, f := range found {
			all = append(all, finding{File: name, Path: f.Path, Rule: f.Rule, Message: f.Message}.in(doc))
		}
		for _, f := range warned {
			all = append(all, finding{File: name, Path: f.Path, Rule: f.Rule, Warning: true, Message: f.Message}.in(doc))
		}
	}
	if err := reportFindings(p, format, all); err != nil {
		return err
	}
	if refused > 0 {
		return countError{refused, max(len(files), countFiles(all))}
	}
	return nil
}

// countFiles returns the number of files with findings.
func countFiles(all []finding) int {
	files := map[string]bool{}
	for _, f := range all {
		files[f.File] = true
	}
	return len(files)
}

// expandFolders replaces folders by their *.json files, without those that editors make. A folder without
// one is an error.
func expandFolders(args []string) ([]string, error) {
	var out []string
	for _, name := range args {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.IsDir() {
			out = append(out, name)
			continue
		}
		files, err := workflowfolder.Files(name)
		if err != nil {
			return nil, exit.With(exit.Usage, err)
		}
		if len(files) == 0 {
			return nil, exit.Usagef("%s has no *.json file; want files, or a folder of workflow definitions", name)
		}
		out = append(out, files...)
	}
	return out, nil
}
