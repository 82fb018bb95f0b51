package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// SecretID is the id of the only secret of the test seams.
const SecretID = "openwop-conformance-canary-secret"

// scriptedPort is a dispatcher's access to a story's scripted model. As with a vendor, a repeated
// invocation id gets the same answer.
type scriptedPort struct{ p *process }

// ID names the provider; see provider.Provider.
func (scriptedPort) ID() string { return mock.ID }

// Call makes one model call; see provider.Provider.
func (s scriptedPort) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	var said entry
	err := s.p.call(ctx, atModel, req.NodeID+" "+req.InvocationID, func() error {
		m := s.p.w.models
		who, ok := m.find(req.InvocationID, req.Provider+":"+req.Model)
		if !ok {
			s.p.w.violate(fmt.Errorf("effects: node %s calls a model with an invocation id that belongs to no run", req.NodeID))
			return errFault
		}
		s.p.w.begins(s.p, s.p.w.runs[who.run], who)
		said = entry(m.say(who, req.InvocationID))
		return nil
	})
	if err != nil {
		return provider.Result{}, context.Canceled
	}
	res, err := mock.New(said).Call(ctx, req, emit)
	if wait := s.p.call(ctx, atPiece, req.NodeID+" ends", nil); wait != nil {
		return provider.Result{}, context.Canceled
	}
	return res, err
}

// say returns the answer to an invocation: the node's next one, or the earlier one of a repeated
// id.
func (m *models) say(who asker, id string) mock.Entry {
	key := who.run + " " + who.node
	nth := slices.Index(m.asked[key], id)
	if nth < 0 {
		nth = len(m.asked[key])
		m.asked[key] = append(m.asked[key], id)
	}
	if all := m.w.scenario.Story.Says[who.node]; nth < len(all) {
		return all[nth]
	}
	return mock.Entry{}
}

// toolPort is a dispatcher's access to a tool with a side effect.
type toolPort struct{ p *process }

// Check accepts everything; see tool.Runner.
func (toolPort) Check(json.RawMessage) *wire.NodeError { return nil }

// Run calls the tool once; see tool.Runner.
func (t toolPort) Run(ctx context.Context, task model.Task, _ model.Journal) model.Result {
	who := asker{run: task.RunID, node: task.Input.NodeID}
	id := tool.InvocationID(task, "sim:tool")
	err := t.p.call(ctx, atModel, who.run+" "+who.node+" "+id, func() error {
		t.p.w.begins(t.p, t.p.w.runs[who.run], who)
		t.p.w.models.say(who, id)
		return nil
	})
	if err != nil {
		return model.Result{Interrupted: context.Canceled}
	}
	return tool.NewSuccess(map[string]json.RawMessage{"output": json.RawMessage(`"done"`)})
}

// entry is a script of one answer.
type entry mock.Entry

func (e entry) Take(context.Context, string, string, int) (mock.Entry, error) {
	return mock.Entry(e), nil
}

func (entry) Program(context.Context, string, string, []mock.Entry) error { return nil }

func (entry) LastBudget(context.Context, string, string) (int, bool, error) { return 0, false, nil }

func (entry) Reset(context.Context, string) (int, error) { return 0, nil }
