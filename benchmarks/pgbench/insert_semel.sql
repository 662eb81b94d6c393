-- One job of semel a commit, as a program in any language stores it.
INSERT INTO semel.jobs (kind, payload) VALUES ('elsewhere', '{"i": 1234, "to": "user1234@example.com"}');
