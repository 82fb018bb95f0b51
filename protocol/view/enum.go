package view

import "reflect"

// Enums lists the values of the string types, for a description of the documents.
var Enums = map[reflect.Type][]string{
	reflect.TypeFor[Tone]():     texts(Good, Bad, Open, Note),
	reflect.TypeFor[Result]():   texts(ResultOpen, ResultWaiting, ResultCompleted, ResultFailed, ResultRetried, ResultBranched, ResultCancelled),
	reflect.TypeFor[Cause]():    texts(CauseFirst, CauseRetry, CauseProse, CauseNextTurn, CauseAfterAnswer, CauseHandedIn),
	reflect.TypeFor[Form]():     texts(FormEnvelope, FormValue),
	reflect.TypeFor[Outcome]():  texts(OutcomeAccepted, OutcomeCached, OutcomeRefused, OutcomeDiscarded),
	reflect.TypeFor[GateName](): texts(Gates...),
	reflect.TypeFor[State]():    texts(Passed, Refused, NotReached, NotApplicable),
	reflect.TypeFor[PartKind](): texts(PartWait, PartCall, PartWork),
}

func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
