"""What returns say about a policy or a method, and how sure that is."""
