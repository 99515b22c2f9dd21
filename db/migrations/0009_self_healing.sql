CREATE TABLE "installation" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"key_id" text,
	CONSTRAINT "installation_has_one_row" CHECK ("installation"."id")
);
--> statement-breakpoint
ALTER TABLE "account_connectors" ADD COLUMN "retest_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD COLUMN "retests" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "account_connectors_retest" ON "account_connectors" USING btree ("retest_at") WHERE "account_connectors"."retest_at" is not null;