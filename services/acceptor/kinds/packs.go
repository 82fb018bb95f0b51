package kinds

import (
	"errors"
	"fmt"
	"maps"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
)

// AddPack registers all kinds of a pack, or none. Warnings and errors are those of
// Register, with the names of the pack and of the schema file.
func (r *Registry) AddPack(p *pack.Pack) (warnings []string, err error) {
	var problems []error
	before := maps.Clone(r.kinds)
	for _, k := range p.Kinds {
		more, err := r.register(k.Name, k.Version, k.Schema, "pack "+p.Name)
		for _, w := range more {
			warnings = append(warnings, fmt.Sprintf("pack %s: %s: %s", p.Name, k.File, w))
		}
		if err == nil {
			continue
		}
		e := fault.New(fault.ValidationError, "pack %s: %s at %q: %s: %s", p.Name, pack.OwnFile, k.At, k.File, messageWithoutCode(err))
		problems = append(problems, e.With("pack", p.Name).With("file", k.File).With("path", k.At))
	}
	if len(problems) > 0 {
		r.kinds = before
	}
	return warnings, errors.Join(problems...)
}

// messageWithoutCode returns an error's message without the code, which AddPack puts
// in front.
func messageWithoutCode(err error) string {
	if e, ok := fault.As(err); ok {
		return e.Message
	}
	return err.Error()
}
