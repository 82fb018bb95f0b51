package bundle

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// asset lists an image, a sound or a file of the run by reference (OpenWOP envelope contract §17). The
// event of its sequence, read from the host, has the address that opens it.
type asset struct {
	Sequence   int    `json:"sequence"`
	NodeID     string `json:"nodeId,omitempty"`
	ArtifactID string `json:"artifactId,omitempty"`
	Kind       string `json:"kind"`
	// URL has no signature. It is empty for an asset within its event.
	URL      string      `json:"url,omitempty"`
	Inline   bool        `json:"inline,omitempty"`
	Bytes    json.Number `json:"bytes,omitempty"`
	MIMEType string      `json:"mimeType,omitempty"`
}

// assets lists the assets of the bundle's events.
func (f *fitting) assets() []asset {
	var out []asset
	for _, e := range f.kept {
		if e.Type != wire.EventArtifactCreated {
			continue
		}
		var p struct {
			ArtifactID   string `json:"artifactId"`
			ArtifactType string `json:"artifactType"`
			Payload      struct {
				URL      string      `json:"url"`
				Bytes    json.Number `json:"bytes"`
				MIMEType string      `json:"mimeType"`
			} `json:"payload"`
		}
		if json.Unmarshal(e.Payload, &p) != nil || !strings.HasPrefix(p.ArtifactType, "media.") {
			continue
		}
		out = append(out, asset{
			Sequence: e.Sequence, NodeID: e.NodeID, ArtifactID: p.ArtifactID, Kind: p.ArtifactType,
			URL: p.Payload.URL, Inline: p.Payload.URL == "", Bytes: p.Payload.Bytes, MIMEType: p.Payload.MIMEType,
		})
	}
	return out
}
