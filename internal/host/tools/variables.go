package tools

import (
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/services/redactor/redact"
)

// variable is an environment variable for a server that is a command.
type variable struct {
	// from is the name in the host's environment, name that in the command's.
	from, name, value string
	// secret: the value is redacted; declared: by the prefix of the variable, not only by its name.
	secret, declared bool
}

// mcpVariable is the prefix of a command's variables, mcpSecret the prefix of variables that are
// always secret.
func mcpVariable(id string) string { return "WAYBILL_MCP_" + EnvID(id) + "_ENV_" }

func mcpSecret(id string) string { return "WAYBILL_MCP_" + EnvID(id) + "_SECRET_" }

// variablesOf lists the variables of a command, by name.
func variablesOf(id string, environ []string) []variable {
	var out []variable
	for _, kv := range environ {
		from, value, _ := strings.Cut(kv, "=")
		if name, ok := strings.CutPrefix(from, mcpVariable(id)); ok && name != "" {
			out = append(out, variable{from: from, name: name, value: value, secret: hasSecretName(name)})
		}
		if name, ok := strings.CutPrefix(from, mcpSecret(id)); ok && name != "" {
			out = append(out, variable{from: from, name: name, value: value, secret: true, declared: true})
		}
	}
	slices.SortFunc(out, func(a, b variable) int { return strings.Compare(a.name+"="+a.from, b.name+"="+b.from) })
	return out
}

// secretNames are the last words of names whose values are secrets. Other values, such as a user or
// a mode, are words that occur in texts.
var secretNames = []string{"TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "DSN"}

// hasSecretName reports whether a variable's name is that of a secret. PAT counts only as a whole
// word: other words end in it.
func hasSecretName(name string) bool {
	name = strings.ToUpper(name)
	return name == "PAT" || strings.HasSuffix(name, "_PAT") ||
		slices.ContainsFunc(secretNames, func(end string) bool { return strings.HasSuffix(name, end) })
}

// checkVariables rejects variables that are set twice, and secrets that are too short for redaction.
func checkVariables(list []variable) (errs []error) {
	for i, v := range list {
		if i > 0 && list[i-1].name == v.name {
			errs = append(errs, fmt.Errorf("%s and %s are both set; keep one of the two", list[i-1].from, v.from))
		}
		if v.declared && len(v.value) < redact.MinLength {
			errs = append(errs, fmt.Errorf("%s: a secret of less than %d bytes cannot be hidden; set a longer one", v.from, redact.MinLength))
		}
	}
	return errs
}

// overlaps rejects ids whose variables could have the same name, because a variable for one command
// would be passed to the other.
func overlaps(programs, all []string) (errs []error) {
	for _, a := range programs {
		for _, b := range all {
			for _, prefix := range []string{mcpVariable(a), mcpSecret(a)} {
				if strings.HasPrefix("WAYBILL_MCP_"+EnvID(b)+"_", prefix) {
					errs = append(errs, fmt.Errorf("--mcp-server: ids %q and %q: the variables of %q would also be variables of the command of %q; give one of them another id", a, b, b, a))
				}
			}
		}
	}
	return errs
}

// namedSecret is a secret of the host, and the variable that it is read from.
type namedSecret struct {
	redact.Secret

	from string
}

// check rejects a value that is a part of its own placeholder.
func (s namedSecret) check() error {
	if s.Validate() != nil { // the ids are valid, so it is the value
		return fmt.Errorf("%s: its value is a part of the id that stands in its place; set one that is harder to guess", s.from)
	}
	return nil
}
