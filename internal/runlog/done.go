package runlog

// Done ends the execution of a delivery, after Ack, Retry or neither. A queue that counts executing
// runs returns deliveries with a method Done; for others this does nothing.
func Done(d Delivery) {
	if e, ok := d.(interface{ Done() }); ok {
		e.Done()
	}
}
