package runlog

// Done ends the execution of a delivery, after Ack, Retry or neither. A queue that counts executing
// runs returns deliveries with a method Done; for others this does nothing.
func Done(d Delivery) {
	if e, ok := d.(interface{ Done() }); ok {
		e.Done()
	}
}

// ProcessOf is the id of this process to which a delivery was handed out. Once the lease of that id is
// lost, no effect of the run may begin. It is empty for a queue that hands runs to any process.
func ProcessOf(d Delivery) string {
	if p, ok := d.(interface{ Process() string }); ok {
		return p.Process()
	}
	return ""
}
