// Package tools reads the settings of MCP servers and A2A agents.
package tools

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/a2a"
	"waybill.dev/waybill/services/dispatcher/tool/mcp"
	"waybill.dev/waybill/services/redactor/redact"
)

// Options name the servers that workflows may call, as ID=URL or ID=stdio:COMMAND.
type Options struct {
	MCPServers, A2AAgents []string
	// Idempotent are MCP tools as SERVER/TOOL.
	Idempotent []string
}

// EnvID returns an id as part of the names of environment variables.
func EnvID(id string) string { return strings.ToUpper(strings.ReplaceAll(id, "-", "_")) }

func mcpTokenEnv(id string) string { return "WAYBILL_MCP_" + EnvID(id) + "_TOKEN" }

func a2aTokenEnv(id string) string { return "WAYBILL_A2A_" + EnvID(id) + "_TOKEN" }

// valueOf returns the value of a variable; empty if it is not set.
func valueOf(name string, environ []string) string {
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// mcpConfigs reads the servers of the flags and their variables.
func (o *Options) mcpConfigs(environ []string) ([]mcp.Config, error) {
	var (
		out           []mcp.Config
		ids, programs []string
		errs          []error
	)
	for _, f := range o.MCPServers {
		c, err := mcp.Parse(f)
		c.TokenName = mcpTokenEnv(c.ID)
		c.Token = valueOf(c.TokenName, environ)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--mcp-server: %w", err))
			continue
		case slices.Contains(ids, c.ID):
			errs = append(errs, fmt.Errorf("--mcp-server %s: is there twice; give each server its own id", c.ID))
			continue
		case c.URL == nil && c.Token != "":
			errs = append(errs, fmt.Errorf("%s: a command takes no bearer token; give it a variable with %sNAME", c.TokenName, mcpVariable(c.ID)))
		}
		if err := checkToken(c.TokenName, c.Token); err != nil {
			errs = append(errs, err)
		}
		if c.URL == nil {
			c.Env = commandEnv(c.ID, environ)
			errs = append(errs, checkVariables(variablesOf(c.ID, environ))...)
			programs = append(programs, c.ID)
		}
		ids = append(ids, c.ID)
		out = append(out, c)
	}
	errs = append(errs, overlaps(programs, ids)...)
	errs = append(errs, o.markIdempotent(out)...)
	return out, errors.Join(errs...)
}

// markIdempotent sets the idempotent tools of each server.
func (o *Options) markIdempotent(servers []mcp.Config) (errs []error) {
	for _, f := range o.Idempotent {
		id, name, _ := strings.Cut(f, "/")
		i := slices.IndexFunc(servers, func(c mcp.Config) bool { return c.ID == id })
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("--idempotent-tool %q: want SERVER/TOOL", f))
		case i < 0:
			errs = append(errs, fmt.Errorf("--idempotent-tool %q: no --mcp-server has the id %q%s", f, id, nearest(id, servers)))
		default:
			servers[i].Idempotent = append(servers[i].Idempotent, name)
		}
	}
	return errs
}

// nearest suggests a server, or lists them.
func nearest(id string, servers []mcp.Config) string {
	var known []string
	for _, c := range servers {
		known = append(known, c.ID)
	}
	switch near := suggest.Names(id, known, 1); {
	case len(near) > 0:
		return "; did you mean " + near[0] + "?"
	case len(known) == 0:
		return "; there are none"
	default:
		return "; there are " + strings.Join(known, ", ")
	}
}

// a2aConfigs reads the agents.
func (o *Options) a2aConfigs(environ []string) ([]a2a.Config, error) {
	var (
		out  []a2a.Config
		errs []error
	)
	for _, f := range o.A2AAgents {
		id, target, _ := strings.Cut(f, "=")
		c, err := a2a.Parse(id, target)
		if err != nil {
			errs = append(errs, fmt.Errorf("--a2a-agent: %w", err))
			continue
		}
		if slices.ContainsFunc(out, func(other a2a.Config) bool { return other.ID == c.ID }) {
			errs = append(errs, fmt.Errorf("--a2a-agent %s: is there twice; give each agent its own id", c.ID))
			continue
		}
		c.TokenName = a2aTokenEnv(id)
		c.Token = valueOf(c.TokenName, environ)
		if err := checkToken(c.TokenName, c.Token); err != nil {
			errs = append(errs, err)
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

// checkToken rejects characters that are invalid in headers. Its error does not contain the token.
func checkToken(name, token string) error {
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s: has a space, a line end or a sign that no token has; set it again", name)
	}
	return nil
}

// inherited are the variables passed to every command. The rest of the host's environment, such as
// keys of other services, is not passed to tools.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE",
}

// commandEnv is the environment of a server that is a command.
func commandEnv(id string, environ []string) []string {
	var out []string
	for _, kv := range environ {
		for _, name := range inherited {
			if strings.HasPrefix(kv, name+"=") {
				out = append(out, kv)
			}
		}
	}
	for _, v := range variablesOf(id, environ) {
		out = append(out, v.name+"="+v.value)
	}
	return out
}

// Check returns all errors in the flags, joined. It reads no variables.
func (o *Options) Check() error { return o.check(nil) }

func (o *Options) check(environ []string) error {
	_, mcpErr := o.mcpConfigs(environ)
	_, a2aErr := o.a2aConfigs(environ)
	return errors.Join(mcpErr, a2aErr)
}

// Validate returns all errors in the flags and their variables, joined.
func (o *Options) Validate() error {
	errs := []error{o.check(os.Environ())}
	for _, s := range o.hostSecrets() {
		errs = append(errs, s.check())
	}
	return errors.Join(errs...)
}

// Secrets are the tokens, and the variables of commands that are secret.
func (o *Options) Secrets() []redact.Secret {
	var out []redact.Secret
	for _, s := range o.hostSecrets() {
		out = append(out, s.Secret)
	}
	return out
}

// hostSecrets are the secrets, each with the variable that it is read from. Their ids are visible in
// events, so those of variables do not contain the names.
func (o *Options) hostSecrets() []namedSecret {
	var out []namedSecret
	add := func(id, from, value string) {
		if len(value) >= redact.MinLength { // shorter ones are not matched
			out = append(out, namedSecret{redact.Secret{ID: id, Value: redact.Value(value)}, from})
		}
	}
	servers, _ := o.mcpConfigs(os.Environ()) // Validate reports the errors
	for n, c := range servers {
		add("mcp-"+c.ID, c.TokenName, c.Token)
		if c.URL != nil {
			continue
		}
		for m, v := range variablesOf(c.ID, os.Environ()) {
			if v.secret {
				add(fmt.Sprintf("mcp-%d-env-%d", n+1, m+1), v.from, v.value)
			}
		}
	}
	agents, _ := o.a2aConfigs(os.Environ())
	for _, c := range agents {
		add("a2a-"+c.ID, c.TokenName, c.Token)
	}
	return out
}

// Runners creates the runners of the node types with a server.
func (o *Options) Runners(later func(func())) (tool.Runners, error) {
	out := tool.Runners{}
	servers, err := o.mcpConfigs(os.Environ())
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	agents, err := o.a2aConfigs(os.Environ())
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if len(servers) > 0 {
		r, err := mcp.New(servers...)
		if err != nil {
			return nil, exit.Usagef("--mcp-server: %w", err)
		}
		later(r.Close)
		out[node.TypeMCPCallTool] = r
	}
	if len(agents) > 0 {
		r, err := a2a.New(agents...)
		if err != nil {
			return nil, exit.Usagef("--a2a-agent: %w", err)
		}
		later(r.Close)
		out[node.TypeA2ASendMessage] = r
	}
	return out, nil
}
