package fault

import (
	"fmt"
	"slices"
)

// Part is a part of a request.
type Part string

// The parts.
const (
	// Body is the zero value.
	Body   Part = ""
	Query  Part = "query"
	Header Part = "header"
)

// Problem is one reason why a request is invalid: what details.problems of a validation_error lists.
type Problem struct {
	In Part `json:"in,omitempty"`
	// Path is a JSON pointer into the body, or the name of a parameter or header.
	Path    string `json:"path"`
	Message string `json:"message"`
	// Rule is a rule or keyword that the value breaks; empty if there is no name for it.
	Rule string `json:"rule,omitempty"`
	// Allowed are the known names or values; nil if there are too many to list.
	Allowed []string `json:"allowed,omitempty"`
	// Suggestion is the allowed one that was probably meant.
	Suggestion string `json:"suggestion,omitempty"`
}

// problemsDetail is the member of details that lists the problems of a validation_error.
const problemsDetail = "problems"

// Invalid returns a validation_error with its problems. The message is that of the first one.
func Invalid(first Problem, others ...Problem) *Error {
	where := first.Path
	switch {
	case where == "" && first.In == Query:
		where = "the query"
	case where == "":
		where = "the body"
	}
	return New(ValidationError, "%s: %s", where, first.Message).With(problemsDetail, append([]Problem{first}, others...))
}

// InvalidBody returns the validation_error of one value of a body.
func InvalidBody(path, format string, args ...any) *Error {
	return Invalid(Problem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// InvalidQuery returns the validation_error of one parameter.
func InvalidQuery(name, format string, args ...any) *Error {
	return Invalid(Problem{In: Query, Path: name, Message: fmt.Sprintf(format, args...)})
}

// InvalidHeader returns the validation_error of one header.
func InvalidHeader(name, format string, args ...any) *Error {
	return Invalid(Problem{In: Header, Path: name, Message: fmt.Sprintf(format, args...)})
}

// InBody returns a validation_error of parameters as that of members of the body with their names. Other
// errors are returned as they are.
func InBody(err error) error {
	e, ok := As(err)
	if !ok {
		return err
	}
	problems, ok := e.Details[problemsDetail].([]Problem)
	if !ok || len(problems) == 0 {
		return err
	}
	problems = slices.Clone(problems)
	for i := range problems {
		if p := &problems[i]; p.In == Query {
			p.In, p.Path = Body, "/"+p.Path
		}
	}
	return Invalid(problems[0], problems[1:]...)
}

// OneOf returns the validation_error of a parameter that has none of the allowed values.
func OneOf[T ~string](name string, allowed []T) *Error {
	p := Problem{In: Query, Path: name, Message: fmt.Sprintf("want one of %v", allowed)}
	for _, v := range allowed {
		p.Allowed = append(p.Allowed, string(v))
	}
	return Invalid(p)
}

// whole returns the error as callers see it: a validation_error always lists its problems.
func (e *Error) whole() *Error {
	if e.Code != ValidationError || e.Details[problemsDetail] != nil {
		return e
	}
	return e.With(problemsDetail, []Problem{{Message: e.Message}})
}
