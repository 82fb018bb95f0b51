package runspan

import "waybill.dev/waybill/protocol/wire"

// follow links the span of a fork to that of its source (OpenWOP host contract §7.2).
func (f *Fold) follow(fork *wire.Fork) {
	if fork == nil {
		return
	}
	trace, _ := TraceOf(fork.SourceRunID, fork.Traceparent)
	f.run.Links = []Link{{Trace: trace, ID: RunSpan(fork.SourceRunID)}}
	f.run.Attributes["openwop.replay.source_run_id"] = fork.SourceRunID
	f.run.Attributes["openwop.replay.from_seq"] = int64(fork.FromSeq)
	f.run.Attributes["openwop.replay.mode"] = string(fork.Mode)
}

// diverged marks a replay that diverged from its source. Copied events do not count: they concern
// the
// source.
func (f *Fold) diverged(e wire.Event) {
	if e.Sequence >= f.rec.Copied() {
		f.run.Attributes["openwop.replay.diverged"] = true
	}
}
