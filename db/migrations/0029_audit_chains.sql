DROP INDEX "audit_seals_hash";--> statement-breakpoint
ALTER TABLE "audit_seals" ADD COLUMN "chain" text DEFAULT 'installation' NOT NULL;--> statement-breakpoint
ALTER TABLE "audit_seals" ADD COLUMN "previous" bigint;--> statement-breakpoint
CREATE INDEX "audit_seals_chain" ON "audit_seals" USING btree ("chain","id");--> statement-breakpoint
CREATE UNIQUE INDEX "audit_seals_hash" ON "audit_seals" USING btree ("chain","hash");